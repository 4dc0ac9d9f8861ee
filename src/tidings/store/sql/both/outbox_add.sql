-- An event for subscribers, written in the transaction of the change. `target` is a URL of its own.
insert into outbox (at, tenant, type, subject, body, target)
values (coalesce(cast(:at as bigint), cast(:now as bigint), tidings_now()), :tenant, :type, :subject, :body, :target)
