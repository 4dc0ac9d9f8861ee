"""Channels: configured ways out. One file per kind, registered in `registry.py`."""
