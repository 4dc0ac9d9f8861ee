"""Sessions: the linked-device sessions that channels hold.

qr_codes: the QR code that links a phone, for a terminal or as SVG.
reconnect_backoff: state machine of a session, with exponential reconnect backoff (pure).
session_monitor: the actor that checks sessions, reconnects them, and expires what waited too long.
"""
