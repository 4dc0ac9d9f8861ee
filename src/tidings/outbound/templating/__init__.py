"""Templates: words with variables, rendered in narrow confines."""
