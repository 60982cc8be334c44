"""A study as text, Markdown, CSV and JSON."""
