"""Threads that read several devices, and the handling of hanging driver calls."""
