-- Remember the answer to a key; one that had run out is written over.
insert into idempotency_keys (scope, key, digest, answer, expires_at) values (:scope, :key, :digest, :answer, :expires_at)
on conflict (scope, key) do update set digest = excluded.digest, answer = excluded.answer, expires_at = excluded.expires_at
