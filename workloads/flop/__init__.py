"""Cost of a step: FLOP and algorithmic bytes, counted operator by operator."""
