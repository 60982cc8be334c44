"""What hooked programs report of their steps: read, combined over ranks, recorded."""
