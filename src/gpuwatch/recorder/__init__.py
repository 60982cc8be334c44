"""The process that launches a workload, samples beside it, and writes the session file."""
