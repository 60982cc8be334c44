"""The summary of one session: its figures, with notes on their reliability."""
