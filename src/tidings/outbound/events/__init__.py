"""Events: webhooks that tell subscribers what happened, through the outbox.

event_types: the event types, their patterns and payloads.
outbox_relay: the actor that turns outbox rows into messages for subscribers.
subscription_cache: the active subscriptions with their signing secrets; disables endpoints that keep failing.
subscriptions: creates, edits, tests and removes subscriptions; rotates their secrets.
"""
