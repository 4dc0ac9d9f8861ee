-- Make the partitions of the coming days. Own file: SQLite has none.
select tidings_history_partitions(coalesce(:now::bigint, tidings_now()), 7) as made
