"""Rollout: a channel goes live gradually, and can be compared with the system that it replaces.

service: sets and reverts mode (live, observe, shadow) and percentage; takes and compares shadow reports.
shadow: shadow mode: compares what would have been sent with another sender's report (pure).
"""
