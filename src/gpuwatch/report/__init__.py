"""Summaries and comparisons as text, Markdown, JSON and CSV. Pure: everything returns a string."""
