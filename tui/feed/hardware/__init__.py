"""Devices as they are now: their facts, their ceilings, the roofline."""
