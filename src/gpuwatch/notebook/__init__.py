"""Sessions and studies as arrays and tables, as returned by ``gpuwatch.load``."""

from __future__ import annotations

from gpuwatch.notebook.loading import Series as Series
from gpuwatch.notebook.loading import Session as Session
from gpuwatch.notebook.loading import Study as Study
from gpuwatch.notebook.loading import Table as Table
from gpuwatch.notebook.loading import load as load
