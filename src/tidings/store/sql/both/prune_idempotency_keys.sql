-- Forget keys that have run out.
delete from idempotency_keys where expires_at < :before
