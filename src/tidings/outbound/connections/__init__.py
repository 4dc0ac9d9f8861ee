"""Connections: the sessions that channels hold, looked at and kept."""
