"""One session, or several side by side, as text, Markdown, CSV and JSON."""
