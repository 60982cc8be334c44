"""A bounded soak: runs, faults and looks for half an hour beside programs that stay all along.

``make soak`` runs it and prints what was left behind; ``make test-all`` has a short one.
"""
