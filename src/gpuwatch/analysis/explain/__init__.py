"""What differs between two environments: time, kernels, settings, conditions, start-up."""
