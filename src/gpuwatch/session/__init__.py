"""The session file: one SQLite database per run."""
