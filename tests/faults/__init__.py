"""Faults injected for real: what is kept, said and cleaned up after each.

``make faults`` tries each as often as docs/reliability.md tells and writes that page's table;
``make test-all`` tries each a few times.
"""
