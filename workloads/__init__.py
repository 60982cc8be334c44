"""Training workloads that report what they do in step lines (docs/step-lines.md).

The package needs only torch, torchvision and the standard library. It is imported as
``gpuwatch.workloads``. In every other environment it is a single file, ``workloads.pyz``
(`archive`), and imported as ``workloads``: imports inside it are relative.
"""
