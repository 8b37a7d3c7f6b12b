"""The language-model grounder: what is asked, of whom, and what an answer is worth."""
