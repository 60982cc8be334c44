"""Runs at other places: ``--on``."""
