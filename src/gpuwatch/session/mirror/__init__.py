"""Carries a growing session from one machine to another: what was committed since (``changes``),
how it is written into the copy (``apply``), and whether both are the same (``content``)."""
