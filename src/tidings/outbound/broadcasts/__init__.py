"""Broadcasts: one content to many recipients, from a frozen snapshot.

contact_matches: finds the contact of each recipient by address, in chunks.
delivery_windows: decides what to feed next: open-task window, rate pacing, canary, error limit (pure).
feeder: the actor that makes tasks from the snapshot, a window at a time.
open_tasks: pauses, resumes, delays or ends the open tasks of a broadcast.
progress: exact counts of recipients by state.
quiet_hours: quiet hours and local start times in the recipient's time zone (pure).
recipient_loader: validates, deduplicates and writes recipients; resumes a broken upload; dry run.
recipient_parser: parses recipients from requests, uploads and contact lists.
recipient_results: recipients with their state, attempts and provider answers; export.
recipient_snapshot: creates broadcasts and freezes their audience as a recipient snapshot, or rolls back.
request_parser: parses and checks a broadcast request.
serializer: a broadcast as API fields, and its events.
service: lists, shows, triggers, pauses, resumes, cancels and retries broadcasts.
validation: validates channel, content, template and webhook of a broadcast.
"""
