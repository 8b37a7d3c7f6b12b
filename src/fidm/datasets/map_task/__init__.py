"""The published files of the HCRC Map Task become tasks, people and tables."""
