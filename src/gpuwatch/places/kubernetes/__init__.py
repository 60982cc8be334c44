"""A Job of Kubernetes, through the user's own kubectl."""
