"""The one place where results become words: numbers, tables, sentences, and pages of the terminal."""
