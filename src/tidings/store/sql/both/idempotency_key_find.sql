-- What was answered to this key, if it has not run out.
select digest, answer from idempotency_keys
where scope = :scope and key = :key and expires_at > coalesce(cast(:now as bigint), tidings_now())
