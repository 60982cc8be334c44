"""Training workloads that report what they do in step lines (docs/step-lines.md).

The folder needs torch, torchvision and the standard library, nothing else. It is imported as
``gpuwatch.workloads``, and it travels into every environment as one file, ``workloads.pyz``
(`archive`), where it is imported as ``workloads``: imports inside it are relative.
"""
