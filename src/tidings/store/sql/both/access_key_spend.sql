-- Spend :cost microseconds of a key's rate; at most :credit of them may be ahead. No row back: it must wait.
update api_keys set free_at = case when free_at > coalesce(cast(:now as bigint), tidings_now()) then free_at
  else coalesce(cast(:now as bigint), tidings_now()) end + cast(:cost as bigint)
where id = :id and free_at + cast(:cost as bigint) <= coalesce(cast(:now as bigint), tidings_now()) + cast(:credit as bigint)
returning free_at
