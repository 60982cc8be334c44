"""What reports say, before a format writes it."""
