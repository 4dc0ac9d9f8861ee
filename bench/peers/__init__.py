"""Peers: other durable queues on the same server, each driven in a process of its own.

These modules may run under another interpreter, so they import nothing of ours but the standard-library parts
of this package.
"""
