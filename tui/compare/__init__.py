"""The compare screen, with its pages of histories and kernel differences."""
