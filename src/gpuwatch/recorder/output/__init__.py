"""What a workload prints, turned into rows: step lines, profiles, log."""
