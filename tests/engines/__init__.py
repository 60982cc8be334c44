"""Real engines for tests: root file systems of this machine, images, daemons, a registry."""
