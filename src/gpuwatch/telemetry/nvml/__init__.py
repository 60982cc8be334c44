"""NVIDIA GPUs through NVML: sampling, health, processes, and GPM where available."""
