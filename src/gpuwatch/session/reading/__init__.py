"""Reading session files, which may be anybody's."""
