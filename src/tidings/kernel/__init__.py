"""The durable queue, which has never heard of messages: enqueue, claim, settle, and who decides what."""
