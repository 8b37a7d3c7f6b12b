"""What is computed from the HCRC Map Task, its figures and its words."""
