"""A few steps after the timed ones, under torch's profiler or ncu."""
