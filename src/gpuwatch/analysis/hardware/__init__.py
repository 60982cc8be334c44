"""What a run made of its hardware: ceilings, roofline, energy, profiles."""
