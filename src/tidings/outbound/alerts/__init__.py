"""Alerts: what the engine finds wrong with itself, tells people, and takes back when it is over."""
