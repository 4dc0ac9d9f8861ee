-- The exact standing of these broadcasts, at one moment. Own file: JSON is taken apart differently.
with wanted as materialized (
  select value as group_id from json_each(:group_ids)
), ended as materialized (
  select c.group_id, count(*) as pieces,
    sum(case when c.outcome = 'done' then c.n else 0 end) as sent, sum(case when c.outcome = 'failed' then c.n else 0 end) as failed,
    sum(case when c.outcome = 'unknown' then c.n else 0 end) as unknown,
    sum(case when c.outcome = 'cancelled' then c.n else 0 end) as cancelled,
    sum(case when c.outcome = 'expired' then c.n else 0 end) as expired,
    sum(case when c.outcome = 'skipped' then c.n else 0 end) as skipped
  from wanted w cross join task_group_counts c on c.group_id = w.group_id group by c.group_id
), working as materialized (
  select t.group_id, count(*) as n from tasks t indexed by tasks_held
  where t.state = 'processing' and t.group_id is not null group by t.group_id
)
select b.group_id, b.state, b.total, b.taken, coalesce(e.pieces, 0) as pieces, coalesce(w.n, 0) as processing,
  coalesce(e.sent, 0) as sent, coalesce(e.failed, 0) as failed, coalesce(e.unknown, 0) as unknown,
  coalesce(e.cancelled, 0) as cancelled, coalesce(e.expired, 0) as expired, coalesce(e.skipped, 0) as skipped
from wanted x cross join broadcasts b on b.group_id = x.group_id
left join ended e on e.group_id = b.group_id left join working w on w.group_id = b.group_id
