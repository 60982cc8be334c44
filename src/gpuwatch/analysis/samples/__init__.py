"""What a session holds over time: samples, steps, the steady state, rates."""
