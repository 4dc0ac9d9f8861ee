-- One node at a time recovers from a rewind; another takes over after :stale.
update rewinds set node = :node, touched_at = coalesce(cast(:now as bigint), tidings_now()), unknown = unknown + :more
where server = :server and finished_at is null
  and (node = :node or touched_at <= coalesce(cast(:now as bigint), tidings_now()) - :stale)
returning found_at, unknown
