"""Receipts in: what providers tell later of a message, verified and folded into it."""
