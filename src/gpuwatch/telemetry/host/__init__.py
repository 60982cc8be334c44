"""The host: processors, memory, control groups, power, and its fingerprint."""
