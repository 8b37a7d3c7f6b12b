"""How well scores, plain counts, words and the model distinguish diagnostic groups."""
