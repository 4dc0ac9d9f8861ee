"""Inbound messages: from a chat message to a finished workflow.

admission: decides on arrival whether a message is handled, skipped or expired; impersonation on test systems.
calendar: the shift calendar, built in or remote.
domain: domain types: incoming messages, requests, commands, calendar days, the interpreter port.
effects: the ledger of calendar commands; idempotency keys and verification by reading back.
escalation: human handoff: cases, escalation reasons, notices to admins.
inbox: lists, shows and retries inbound messages.
ingestion: writes new messages, their tasks and the cursor in one transaction; deduplication.
language: rule-based understanding of shift messages, without a model.
leases: one poller per source: lease, heartbeat, takeover, fencing token.
llm: the language model: prompts, client, rate limit, budget, journal, fallback to the rules.
message_handler: the task handler of inbound messages, in order per conversation.
opt_out_keywords: the words STOP, START and HELP: opt-outs, and an answer with information.
option_parsers: parsers of option values that the settings tables share.
pipeline: decides what one message leads to: start or resume a workflow, hold it, or ignore it.
poller: reads a source page by page until it has caught up; detects gaps.
reply_port: the port through which replies and notices become outbound messages.
roster: the allowed senders, with squad and role.
sender_ids: identities of senders whose phone number a platform hides or changes.
service: the inbound service used by the API, CLI and dashboard.
source_notices: notices about failing sources, overrun polls, gaps and late edits.
sources: the sources, one file per kind.
webhooks: receives webhooks of sources and callbacks of channels.
workflow: conversations with a goal: state machine, graph, plans, replies.
"""
