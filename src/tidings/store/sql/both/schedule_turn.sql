-- Who ticks now: the last one, or anybody once that one has been silent. A time too far ahead is of a clock that
-- was set back since.
update maintenance set due_at = coalesce(cast(:now as bigint), tidings_now()) + :hold, node = :me
where name = :name and (node = :me or due_at <= coalesce(cast(:now as bigint), tidings_now())
  or due_at > coalesce(cast(:now as bigint), tidings_now()) + :hold)
returning name
