-- A browser signed in.
insert into sessions (digest, owner, created_at, expires_at, origin)
values (:digest, :owner, coalesce(cast(:now as bigint), tidings_now()), coalesce(cast(:now as bigint), tidings_now()) + cast(:length as bigint), :origin)
