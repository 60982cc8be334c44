"""NVIDIA GPUs through NVML: sampling, health, processes, and GPM where the card has it."""
