"""The HCRC Map Task, spoken route instructions: the files, the analysis and its words."""
