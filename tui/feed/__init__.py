"""Data for the screens: a thread reads the session and posts frozen snapshots."""
