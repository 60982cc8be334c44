"""Results of a whole study: cells, questions, sweeps, noise floor."""
