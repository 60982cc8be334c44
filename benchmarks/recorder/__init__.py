"""What recording costs, beside nvitop, nvtop, gpustat and a logger, on the same stand-in driver."""
