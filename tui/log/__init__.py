"""The log of a session on a whole screen."""
