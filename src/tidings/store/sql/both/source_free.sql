-- Let go, whatever came of it; nobody reads before the rest is over. A run without a failure has read all there was.
update sources set holder = null, began_at = null, until = null, due_at = coalesce(cast(:now as bigint), tidings_now()) + :rest,
  read_at = case when failures > 0 then read_at else coalesce(cast(:now as bigint), tidings_now()) end
where name = :name and token = :token
returning name
