"""Mapping: what a record of the source becomes in the target, by rules of the job file."""
