"""The home screen: devices now, sessions and studies."""
