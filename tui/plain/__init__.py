"""The screens as plain lines of text, without Textual."""
