"""A few extra steps after the timed ones, under torch's profiler or ncu."""
