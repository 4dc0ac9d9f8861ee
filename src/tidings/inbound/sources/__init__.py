"""Sources: where messages come from, one file per kind."""
