"""Output of other profilers, converted to the session's profile format."""
