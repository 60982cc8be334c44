"""Why two environments differ: time, kernels, settings, conditions, start-up."""
