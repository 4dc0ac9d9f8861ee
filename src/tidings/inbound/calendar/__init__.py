"""The shift calendar: the built-in one, a remote one over HTTP, and the service on top of them.

builtin: the calendar in our own tables; a change is unique by its key.
day_grid: one operational day as half-hour slots per squad: reads, previews, undo commands. Pure.
http: a remote calendar with a command API.
ical: shifts as an iCalendar feed (RFC 5545).
port: the calendar port and its errors.
service: weeks, history, changes by hand and undo, for the API, CLI and dashboard.
settings: the settings table [inbound.calendar].
"""
