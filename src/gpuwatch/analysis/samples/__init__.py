"""A session's data over time: samples, steps, the steady state, rates."""
