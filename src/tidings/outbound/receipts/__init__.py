"""Receipts: what providers report later about a message, verified by signature.

base: receipts, callbacks and the port of callback readers.
callback_listener: the port for callbacks that are not receipts, such as inbound messages.
callbacks: verifies a callback, records its receipts and passes on the rest.
delivery_status: delivery status of a message from its receipts (pure).
expected_receipts: remembers provider message ids at send time, so that a callback finds its message.
receipt_recorder: records receipts idempotently, and settles uncertain messages that they prove sent.
receipt_reconciler: the actor that settles receipts that came early and prunes unmatched ones.
registry: the callback reader of each channel kind, and the callback URL.
telegram: Telegram: secret header.
twilio: Twilio: status callbacks and request signature.
whatsapp_cloud: WhatsApp Cloud: webhook challenge, signature and statuses.
whatsapp_session: WAHA: webhook HMAC and acks.
"""
