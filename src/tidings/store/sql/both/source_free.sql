-- Let go, whatever came of it; nobody reads before the rest is over.
update sources set holder = null, began_at = null, until = null, due_at = coalesce(cast(:now as bigint), tidings_now()) + :rest
where name = :name and token = :token
returning name
