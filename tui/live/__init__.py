"""The live screen: one session, while it grows or when it is over."""
