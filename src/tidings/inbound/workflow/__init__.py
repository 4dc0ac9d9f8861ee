"""Workflows: a conversation with a goal, owned by a squad."""
