"""The route language: programs, the map as a walker meets it, and where programs become moves."""
