-- The exact standing of these broadcasts, at one moment. Own file: JSON is taken apart differently.
with wanted as materialized (
  select cast(value as bigint) as group_id from json_array_elements_text(cast(:group_ids as json)) j(value)
), ended as materialized (
  select c.group_id, count(*) as pieces,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'done'), 0) as bigint) as sent,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'failed'), 0) as bigint) as failed,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'unknown'), 0) as bigint) as unknown,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'cancelled'), 0) as bigint) as cancelled,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'expired'), 0) as bigint) as expired,
    cast(coalesce(sum(c.n) filter (where c.outcome = 'skipped'), 0) as bigint) as skipped
  from wanted w join task_group_counts c on c.group_id = w.group_id group by c.group_id
), working as materialized (
  select t.group_id, count(*) as n from tasks t where t.state = 'processing' and t.group_id is not null group by t.group_id
)
select b.group_id, b.state, b.total, b.taken, coalesce(e.pieces, 0) as pieces, coalesce(w.n, 0) as processing,
  coalesce(e.sent, 0) as sent, coalesce(e.failed, 0) as failed, coalesce(e.unknown, 0) as unknown,
  coalesce(e.cancelled, 0) as cancelled, coalesce(e.expired, 0) as expired, coalesce(e.skipped, 0) as skipped
from wanted x join broadcasts b on b.group_id = x.group_id left join ended e on e.group_id = b.group_id left join working w on w.group_id = b.group_id
