"""Threads that read several devices, and what is done when a driver call hangs."""
