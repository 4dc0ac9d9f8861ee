-- A run is complete.
update imports set ended_at = coalesce(cast(:now as bigint), tidings_now()) where id = :id
