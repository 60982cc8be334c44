"""NVIDIA's DCGM, for the bandwidth of cards without GPM."""
