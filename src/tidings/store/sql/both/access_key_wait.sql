-- How long until a key may call again, at the earliest.
select free_at - coalesce(cast(:now as bigint), tidings_now()) as wait from api_keys where id = :id
