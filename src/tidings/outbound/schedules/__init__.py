"""Schedules: recurring messages and broadcasts.

bulk_actions: creates many schedules, and pauses, resumes, ends or removes those that match a filter.
catch_up: which occurrences are due, which are missed, and the catch-up policies (pure).
occurrence_builder: prepares the message of an occurrence, to be written in the scheduler's transaction.
recurrence: from a rule to its instants, across daylight-saving changes (pure).
request_parser: parses and checks a schedule request.
rrules: RRULE (RFC 5545).
rule_descriptions: a recurrence rule in plain English.
rule_parser: parses recurrence rules: cron, interval, daily, weekly, monthly, yearly, RRULE.
schedule_filters: filters of the list and of bulk actions.
scheduler: the actor that makes due occurrences exactly once; prunes the occurrence log.
service: creates, edits, pauses, resumes, runs, previews and removes schedules.
"""
