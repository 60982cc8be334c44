"""The run's processes, and others on its GPUs."""
