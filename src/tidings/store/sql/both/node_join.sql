-- A new incarnation of a process.
insert into nodes (name, started_at, seen_at, info)
values (:name, coalesce(cast(:now as bigint), tidings_now()), coalesce(cast(:now as bigint), tidings_now()), :info)
returning id, started_at, seen_at
