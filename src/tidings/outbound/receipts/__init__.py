"""Receipts: what providers report later about a message, verified by signature.

base: receipts, callbacks, and the ports of callback readers and of listeners to other callbacks.
callbacks: verifies a callback, records its receipts and passes on the rest; the reader of each channel kind.
delivery_status: delivery status of a message from its receipts (pure).
receipt_recorder: expects receipts by provider id, records them, and settles uncertain messages that they prove sent.
receipt_reconciler: the actor that settles receipts that came early and prunes unmatched ones.
telegram: Telegram: secret header.
twilio: Twilio: status callbacks and request signature.
whatsapp_cloud: WhatsApp Cloud: webhook challenge, signature and statuses.
whatsapp_session: WAHA: webhook HMAC and acks.
"""
