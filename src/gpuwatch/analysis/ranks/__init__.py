"""The ranks of one run: figures, imbalance, stragglers, and what goes with them."""
