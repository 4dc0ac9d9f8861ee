"""The routes, one module per resource.

alerts: open and past alerts, acknowledge.
audit: the audit log.
broadcasts: broadcasts, their recipients, reports, and actions such as pause and retry.
bulk: bulk intake of messages (NDJSON).
calendar: the shift calendar, its changes, undo, and the iCalendar feed.
callbacks: delivery callbacks of providers, verified by signature.
cases: cases, notices and conversations.
channels: channels and nodes: state, pause, resume, endpoint secrets.
contacts: contacts, and their import from CSV or NDJSON.
dead_letters: dead letters by cause; retry and discard.
health: liveness, readiness, health and scheduler health.
inbound_webhooks: webhooks of inbound sources, verified by signature.
inbox: inbound messages and sources.
keys: API keys.
lists: contact lists and saved filters.
log: the log of sent messages, as JSON or CSV.
messages: send, list, show, explain, cancel, retry, reschedule.
metrics: Prometheus metrics.
migrations: migration jobs: plan, run, verify, undo, repair.
rollout: gradual rollout of a channel, and comparison with another sender.
roster: the people who may write to the inbox, and their import.
schedules: recurring messages and broadcasts, previews, occurrences.
sessions: sign-in and sign-out for browsers.
sla: messages sent on time, by day and channel.
subscriptions: event subscriptions (signed webhooks).
suppressions: the suppression list, and its import.
templates: templates, their versions and previews.
"""
