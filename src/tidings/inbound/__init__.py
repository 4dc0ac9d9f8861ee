"""Inbound: from a group chat to a done workflow."""
