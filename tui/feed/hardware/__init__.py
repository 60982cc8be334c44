"""Current devices: their attributes, their ceilings, the roofline."""
