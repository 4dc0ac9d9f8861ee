-- The cursor behind what this transaction writes; it is a heartbeat, too. No row back: somebody else has taken over.
update sources set cursor = :cursor, failures = 0, problem = null,
  read_at = coalesce(cast(:now as bigint), tidings_now()), until = coalesce(cast(:now as bigint), tidings_now()) + :lease
where name = :name and token = :token and holder is not null
returning name
