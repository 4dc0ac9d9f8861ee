"""Tidings: every message, on time, once, and you can see why."""

__version__ = "0.1.0"
