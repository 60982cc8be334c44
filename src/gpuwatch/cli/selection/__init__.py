"""From what was typed to session files."""
