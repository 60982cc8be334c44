"""The compare screen, and its pages of histories and kernel differences."""
