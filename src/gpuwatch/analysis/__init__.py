"""Analysis of recorded sessions: pure functions from records to results."""
