"""Input parsing: everything that people and programs write, parsed or rejected with a hint.

fields: fields of a request body: types, required fields, hints, and the same table as JSON Schema.
natural_times: times as ISO 8601 or in natural language ("tomorrow 9am"), and durations from now.
pagination: cursor pagination: the shared Page, opaque cursors, page sizes.
plugins: channel and connector kinds: registry by name, entry points of other packages, options tables.
timezones: time zone names, and wall-clock times across clock changes (gaps and overlaps).
"""
