"""File formats of timed dialogs, one module each."""
