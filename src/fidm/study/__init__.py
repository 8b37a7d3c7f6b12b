"""Studies made of the parts: simulated people so far."""
