"""Workflows: conversations with a goal, owned by a squad.

confirmation: asks for a yes before an uncertain request is booked. Pure.
conversations: conversations with messages, decisions, prompts and cost, for people.
correlation: which open workflow a message belongs to, and whether it starts a new one. Pure.
edits: edits and deletions of messages that were already handled.
followup: ends a workflow when all its commands have results, and replies with a summary.
graph: the workflow graph as data, with a plain runner and one by LangGraph (extra `graph`).
instance: a workflow as stored: JSON with a schema version; who said which slot value.
plans: the nodes of the graph: from what was understood to the next state, replies and commands. Pure.
replay: handles a past conversation again, offline, and compares the results; a dry run.
reply_texts: the texts of all replies. Pure.
repository: reads the state of a conversation and commits a handled message in one transaction.
reruns: handles held messages after their release.
service: builds the workflow service: handlers, actors, cases, conversations, replay.
settings: workflow settings of the table [inbound].
state_machine: stages and the one table of transitions between them.
timers: idle timeouts, release of held messages, reminders of cases.
validation: validates requests: values, authorization, time, contradictions. Pure.
"""
