-- It was used; written once a minute at the most.
update api_keys set last_used_at = coalesce(cast(:now as bigint), tidings_now())
where id = :id and coalesce(last_used_at, 0) < coalesce(cast(:now as bigint), tidings_now()) - cast(:every as bigint)
