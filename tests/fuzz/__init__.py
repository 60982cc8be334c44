"""Files from elsewhere, mutated by the thousand: what gpuwatch makes of each is judged.

``make fuzz`` (``python -m tests.fuzz``) takes 10,000; ``make test-all`` a few hundred, and all that
ever failed (``tests/data/fuzz``).
"""
