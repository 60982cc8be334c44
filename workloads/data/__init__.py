"""The data of the workloads: synthetic, or real from a folder."""
