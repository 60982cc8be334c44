"""gpuwatch: launch, watch, record and compare training runs on a GPU machine."""

__version__ = "0.1.0"
