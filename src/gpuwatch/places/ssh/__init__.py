"""A host that is reached by the user's own OpenSSH."""
