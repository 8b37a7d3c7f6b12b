"""The published files of the Space Adventure Task become tasks, people and tables."""
