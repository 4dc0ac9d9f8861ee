"""Outbound messages: accept, deliver and explain them.

alerts: alert rules, measurements and the evaluator.
broadcasts: one content to many recipients: snapshot, quiet hours, pacing, canary, progress.
channel_control: lists channels with their state; pauses and resumes them.
channel_probes: tests a channel's account without sending anything.
channels: the channels, one file per kind.
contacts: contacts, lists, the suppression list, bulk import.
dead_letters: lists, groups, retries and discards dead letters in bulk.
delivery: the task handler of messages: loads them in batches and sends each on its channel.
destination_breakers: a circuit breaker and Retry-After for each destination host, shared by all processes.
draft_parser: parses the fields and times of a message request into a draft.
events: event types, webhook subscriptions and the outbox relay.
explanation: explains why a message waits, or what became of it.
health: health status from the last fifteen minutes of attempts.
idempotency: idempotency keys: the same key and body get the first answer again.
imports: imports pending messages from another system's table; dry run and undo.
markup: escapes template values for the markup of a channel.
message_actions: the actions allowed in each state of a message.
message_serializer: a message and its history as API fields.
message_validation: validates a draft and its limits (size, recipient, expiry, priority).
messages: accepts messages one by one or in bulk; lists, cancels, retries, reschedules and discards them.
overview: bounded counts for the dashboard: waiting, due, in flight, sent, failed.
receipts: delivery receipts from provider callbacks, with their signatures verified.
recipient_rate_limits: wait slots for messages whose recipient has reached its rate limit.
rollout: gradual rollout of a channel: live, observe and shadow mode, percentage of recipients.
scheduler_health: whether due messages are polled, the queue keeps up and the clock is right.
schedules: recurring messages and broadcasts, with catch-up of missed occurrences.
send_checks: last checks before a send: suppression, paused broadcast, rollout mode and percentage.
sent_log: the log of sent messages, and its export.
service: the outbound service used by the API, CLI and dashboard.
sessions: sessions of linked devices: monitor, reconnect backoff, QR codes.
sla: the share of messages sent within 60 seconds of their due time, by day and channel.
summary: one snapshot of the engine for `tidings top`.
templates: templates with variables, in immutable versions, rendered in a Jinja sandbox.
tenant_quotas: daily message quotas and allowed channels of tenants.
trend_sampler: samples queue depth and lag for the charts of the last fifteen minutes.
upcoming: messages, schedule occurrences and broadcasts that are due in a period.
"""
