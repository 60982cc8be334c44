"""Comparison of sessions and cells: ratios, validity, verdicts and their wording."""
