"""Planted bugs: each patches the engine inside a worker process, and the judge must catch every one of them."""

PLANTS = {}
