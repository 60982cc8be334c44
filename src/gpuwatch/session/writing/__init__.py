"""Writing session files."""
