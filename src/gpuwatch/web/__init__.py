"""The screens in a browser of this machine: one process of the program per page."""
