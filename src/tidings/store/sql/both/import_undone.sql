-- What still waited of it was given back.
update imports set undone_at = coalesce(cast(:now as bigint), tidings_now()) where id = :id
