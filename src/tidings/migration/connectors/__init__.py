"""Connectors: the systems that records come from and go to, one module each.

affinity: Affinity as a source.
affinity_records: attributes, values and errors of Affinity. Pure.
api_client: HTTP calls of a connector: SSRF guard, Retry-After, errors by status, secrets redacted.
attio: Attio as a target.
attio_items: notes, tasks and meetings of Attio. Pure.
attio_values: conversion of Attio's values and errors. Pure.
confined_paths: file access below one folder, without following links (path traversal guard).
csv: CSV files as source and target.
file_source: reads records from files page by page.
file_target: writes records to files, once per key.
http: any HTTP API, by templates, as source and target.
ndjson: NDJSON files as source and target.
options: the Connector definition, parsers of its options, and what it may access.
port: the interface of connectors: RecordSource, RecordTarget, records, limits, errors.
record_validation: rejects records that no database can store. Pure.
registry: connectors by name, built-in or from the entry point group `tidings.connectors`.
sql: any SQLAlchemy database as source and target.
sql_database: tables, keys, threads, errors and values of one SQL database.
"""
