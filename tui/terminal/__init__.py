"""Between Textual and the terminal."""
