"""Checks of `gpuwatch doctor`: hardware counters, images, builds of torch."""
