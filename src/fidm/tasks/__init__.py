"""The task layer: a map or a table becomes a decision process, its values, and a check of both."""
