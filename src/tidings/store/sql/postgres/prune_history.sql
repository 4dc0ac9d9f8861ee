-- Drop whole days of history. Own file: partitions.
select tidings_history_drop(:before) as dropped
