-- The settings have a key; remembered for the time when they have none.
insert into configured_keys (id, since) values (1, coalesce(cast(:now as bigint), tidings_now()))
on conflict do nothing
