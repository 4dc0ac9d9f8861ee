-- Reserve the next start towards one recipient; no row back means it is too early.
insert into recipient_rate_limits (queue, key, next_at) values (:queue, :key, coalesce(cast(:now as bigint), tidings_now()) + :gap)
on conflict (queue, key) do update set next_at = excluded.next_at
where recipient_rate_limits.next_at <= coalesce(cast(:now as bigint), tidings_now())
returning key
