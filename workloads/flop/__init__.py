"""What a step costs: FLOP and algorithmic bytes, counted operator by operator."""
