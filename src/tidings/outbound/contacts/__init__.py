"""Contacts: people with addresses, their lists, and the suppression list.

bulk_import: imports contacts and opt-outs from uploads; dry run, all or nothing.
contact_fields: parses, normalizes and merges the fields of a contact.
contact_filters: selects contacts by tags, language, time zone, channel and attributes.
contact_lists: lists with members, and saved filters.
service: creates, edits, finds, lists and removes contacts.
suppressions: the suppression list: opt-outs by address, on one channel or on all.
uploads: rows from a CSV or NDJSON stream, in constant memory.
"""
