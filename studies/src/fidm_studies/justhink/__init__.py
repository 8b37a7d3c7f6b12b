"""JUSThink, children who build a network in pairs: the files, the analysis and its words."""
