"""The terminal interface: screens that read session files and act through gpuwatch's commands."""
