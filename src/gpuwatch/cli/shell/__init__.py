"""Completions for bash, zsh and fish."""
