"""The Space Adventure Task, a planning task: the files, the analysis and its words."""
