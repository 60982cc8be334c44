"""The hook: what reports the steps of a training program that knows nothing of gpuwatch.

``hook.pyz`` goes first on the program's ``PYTHONPATH``. It holds exactly two modules:
``sitecustomize``, which Python runs at its start, and the package ``gpuwatch_hook``.
``outside/gpuwatch_hook.py`` stands in for that package where there is no run.
"""
