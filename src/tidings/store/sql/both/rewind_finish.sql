-- Everything that may have been sent on the lost copy is marked.
update rewinds set finished_at = coalesce(cast(:now as bigint), tidings_now())
where server = :server and node = :node and finished_at is null
returning survived_at, found_at, unknown
