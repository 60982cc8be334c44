"""How well a run used its hardware: ceilings, roofline, energy, profiles."""
