"""Dispatch: how a claimed task reaches whoever runs it, where that is not the node that claimed it.

Dispatchers claim, publish and settle; transports send, and have no database. See docs/how-to/fleet.md.
"""
