"""The screens as lines of words, without Textual."""
