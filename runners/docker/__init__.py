"""Workloads in Docker containers of this machine: ``--env docker[=IMAGE]``."""
