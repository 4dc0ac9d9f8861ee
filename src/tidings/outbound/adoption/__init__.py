"""Adoption: taking over from another system, and going live step by step."""
