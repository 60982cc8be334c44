"""Pure functions from what was recorded to what it means."""
