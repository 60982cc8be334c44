"""Profiles that other tools printed, read into the form in which a session keeps its own."""
