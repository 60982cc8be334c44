"""What a run and its GPUs should be warned of: throttling, others on a GPU, little memory."""
