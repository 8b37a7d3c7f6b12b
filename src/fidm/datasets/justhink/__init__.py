"""The published files of JUSThink become tasks, people and tables."""
