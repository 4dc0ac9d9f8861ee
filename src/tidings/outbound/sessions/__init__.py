"""Sessions: the linked-device sessions that channels hold.

offline_expiry: expires messages that waited too long for a session to come back.
qr_codes: the QR code that links a phone, for a terminal or as SVG.
reconnect_backoff: state machine of a session, with exponential reconnect backoff (pure).
session_monitor: the actor that checks sessions, writes their state and reconnects them.
"""
