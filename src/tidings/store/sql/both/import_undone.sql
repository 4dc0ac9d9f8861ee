-- A run was undone.
update imports set undone_at = coalesce(cast(:now as bigint), tidings_now()) where id = :id
