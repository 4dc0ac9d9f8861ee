-- Whoever changes this row looks at the session now; if nothing comes of that, another one may once :lease is over.
update queues set look_at = coalesce(cast(:now as bigint), tidings_now()) + :lease, look_no = look_no + 1
where name = :name and link is not null and look_at <= coalesce(cast(:now as bigint), tidings_now())
returning link, link_why, link_since, link_tries, link_told, lost_at, retry_at, look_no
