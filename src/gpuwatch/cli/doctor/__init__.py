"""Checks of `gpuwatch doctor`: hardware counters, and the clock elsewhere."""
