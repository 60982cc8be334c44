"""Processes of this machine: the workload's tree, and who the others are."""
