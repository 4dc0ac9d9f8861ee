"""Compatibility with Rahat Connect: its routes and words, on top of broadcasts (setting `compat`).

requests: translates requests into those of the native API.
responses: broadcasts and recipients as Connect's sessions and broadcasts.
routes: the routes under /api/v1.
"""
