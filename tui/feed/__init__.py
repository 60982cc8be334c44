"""What a screen shows: a thread reads the session and hands frozen snapshots over."""
