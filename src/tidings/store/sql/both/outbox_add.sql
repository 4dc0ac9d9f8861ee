-- Something to be told to others; written in the transaction of the change that it tells of. `target` is a URL of its own.
insert into outbox (at, tenant, type, subject, body, target)
values (coalesce(cast(:at as bigint), cast(:now as bigint), tidings_now()), :tenant, :type, :subject, :body, :target)
