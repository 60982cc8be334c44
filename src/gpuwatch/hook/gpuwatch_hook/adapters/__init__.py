"""What the hook learns from frameworks, one module each; see :mod:`gpuwatch.hook.archive`."""
