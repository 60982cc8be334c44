"""The terminal below Textual."""
