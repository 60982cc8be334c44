"""The live screen: one session, during its run or after it."""
