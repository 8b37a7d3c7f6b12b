"""What is computed from the Space Adventure Task, its figures and its words."""
