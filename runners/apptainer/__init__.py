"""Apptainer, and Singularity before it: the workload in a SIF or a sandbox."""
