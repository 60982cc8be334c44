"""What `gpuwatch doctor` asks: hardware counters, images, builds of torch."""
