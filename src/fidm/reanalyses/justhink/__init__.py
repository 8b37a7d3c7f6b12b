"""What is computed from JUSThink, its figures and its words."""
