"""Statistics on plain numbers: intervals, tests, power, changes of level."""
