"""Schedules: when messages are made, again and again."""
