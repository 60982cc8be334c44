"""What a screen costs, beside those of nvitop, nvtop and gpustat on the same stand-in driver."""
