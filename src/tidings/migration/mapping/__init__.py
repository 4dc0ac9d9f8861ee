"""Mapping: turns a source record into a target record by the job file's rules. Pure, except for user hooks.

content_hash: canonical JSON and hashes of content.
converters: converts values to field types.
dependency_order: record types in waves by their references (topological order); names cycles.
expressions: JMESPath expressions with text functions.
hooks: user functions that finish a record.
lint: findings about a map: lost fields, wrong types, missing options.
map_parser: parses `[types.NAME]` of a job file.
mapped_record: the result of mapping: a mapped or a rejected record, links, dropped values; redaction.
mapper: applies the rules to one record.
paths: finds a value in a record by its path.
rules: field rules and type maps.
schema_check: checks a mapped record against the target's attributes.
"""
