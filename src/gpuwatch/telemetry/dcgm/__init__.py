"""NVIDIA's DCGM: memory bandwidth of cards without GPM."""
