"""Broadcasts: one content to many people, frozen, paced and counted."""
