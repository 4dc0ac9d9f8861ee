"""Access: who may do what, for whom, and what was done."""
