"""What one session says: its figures, and what a reader must know of them."""
