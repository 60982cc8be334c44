"""Plain tables for a terminal."""
