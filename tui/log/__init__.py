"""The screen with the log of a session."""
