"""A study on disk: its folder, plan, labels, progress and summary."""
