-- Whoever changes this row looks at the broadcast now; if it dies, the next one does, a lease later.
update broadcasts set look_at = coalesce(cast(:now as bigint), tidings_now()) + :lease
where lot = :lot and look_at = :seen
returning look_at, coalesce(cast(:now as bigint), tidings_now()) as now
