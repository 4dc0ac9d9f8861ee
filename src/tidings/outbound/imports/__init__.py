"""Imports: pending rows of another system's table become messages.

column_map: maps columns and JSON paths of a row to message fields.
table_import: imports a table page by page; dry run, exactly one message per row, undo.
timestamps: parses timestamps of other systems: epoch seconds to microseconds, ISO 8601.
"""
