-- Forget a key: what it began came to nothing.
delete from idempotency_keys where scope = :scope and key = :key
