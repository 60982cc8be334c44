"""The page of processes."""
