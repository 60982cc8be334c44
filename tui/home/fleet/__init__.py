"""The screen of machines elsewhere."""
