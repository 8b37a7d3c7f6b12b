"""People have the last word: the trail of their decisions, what follows from it, and how far they agree."""
