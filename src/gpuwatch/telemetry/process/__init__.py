"""Processes of this machine: the workload's tree, and others on its GPUs."""
