"""A whole study: its cells, questions, sweeps, noise floor and result."""
