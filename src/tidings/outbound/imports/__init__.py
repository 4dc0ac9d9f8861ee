"""Imports: rows of another system become messages, schedules and broadcasts, and their results go back.

column_map: maps columns and JSON paths of a row to fields.
row_parser: turns a row into a message, a schedule or a recipient of a broadcast.
settings: the named imports of the settings file.
table_import: imports a table page by page; dry run, and no row twice.
timestamps: parses timestamps of other systems: epoch seconds to microseconds, ISO 8601.
undo: cancels what an import created and has not been sent.
write_back: the actor that writes status, sent time and error to the other table.
"""
