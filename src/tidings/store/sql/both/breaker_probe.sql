-- Half open: grant one probe; a probe that never came back is granted anew after its deadline.
update queues set probe_at = coalesce(cast(:now as bigint), tidings_now())
where name = :name and opened_at is not null
  and coalesce(blocked_until, 0) <= coalesce(cast(:now as bigint), tidings_now())
  and (probe_at is null or probe_at + deadline + 5000000 <= coalesce(cast(:now as bigint), tidings_now()))
returning name
