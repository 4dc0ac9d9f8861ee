-- The latest time that this database has seen, from processes that worked and from the newest task that waits; and now.
select coalesce(max(seen.at), 0) as high, (select coalesce(cast(:now as bigint), tidings_now())) as now
from (
  select n.seen_at as at from (select seen_at from nodes order by id desc limit 100) n
  union all
  select t.changed_at from (select changed_at, state from tasks order by id desc limit 1) t where t.state = 'pending'
) seen
