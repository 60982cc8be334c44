"""Warnings of a run and its GPUs: throttling, shared GPUs, low memory."""
