"""The tests. A package, so that nobody else's of this name stands in for it."""
