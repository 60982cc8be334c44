"""What a training program may say by itself, and the package of the hook.

    import gpuwatch_hook as g

    with g.step(samples=64):
        ...

Within a run of gpuwatch that is believed instead of what the hook sees. Elsewhere it does nothing:
copy ``gpuwatch_hook.py``, which is written by ``gpuwatch hook-api``, beside your program.
"""
