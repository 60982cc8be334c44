"""Apptainer and its predecessor Singularity: the workload in a SIF file or a sandbox."""
