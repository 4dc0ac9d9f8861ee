-- Only one process writes a source at a time; the lease ends if it dies.
update write_backs set next_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where source = :source and next_at <= coalesce(cast(:now as bigint), tidings_now()) returning source
