"""The one place where results become words: numbers, tables, sentences, and pages of the terminal."""

NOT_A_DIAGNOSIS = "Research use only, not a diagnosis."
