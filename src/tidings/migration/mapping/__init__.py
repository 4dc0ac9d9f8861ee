"""Mapping: turns a source record into a target record by the job file's rules. Pure, except for user hooks.

content_hash: canonical JSON and hashes of content.
converters: converts values to field types.
dependency_order: record types in waves by their references (topological order); names cycles.
expressions: JMESPath expressions with text functions.
lint: findings about a map: lost fields, wrong types, missing options.
map_parser: parses `[types.NAME]` of a job file.
mapped_record: a mapped or a rejected record, links, dropped values; redaction; check against the target's attributes.
mapper: applies the rules and the user's hook to one record, and compares it with the target.
rules: field rules, type maps, and values of a record by their path.
"""
