"""The rules grounder: its words and its grammar are data."""
