"""Where the evidence for a profile lies: at which steps, and in which segments."""
