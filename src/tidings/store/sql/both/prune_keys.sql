-- Forget keys that have run out.
delete from keys where expires_at < :before
