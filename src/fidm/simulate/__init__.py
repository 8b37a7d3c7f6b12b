"""Simulated people: they choose, walk and speak, alone or as a whole study with known truth."""
