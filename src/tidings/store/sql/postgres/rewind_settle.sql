-- Move waiting tasks that may have been sent on the lost copy: flagged as unknown, or failed where nobody may send them
-- again. Own file: arrays.
with kept as (
  update tasks t set state = g.state, unknown = true, category = null, due_at = coalesce(g.due_at, t.due_at),
    head = t.head and (g.state = 'pending' or t.ordering_key is null), changed_at = coalesce(:now::bigint, tidings_now())
  from unnest(:ids::bigint[], :claims::int[], :states::text[], :dues::bigint[]) g(id, claim_no, state, due_at)
  where t.id = g.id and t.claim_no = g.claim_no and t.state is not distinct from 'pending'
  returning t.id, t.queue, t.state, t.attempts, t.changed_at, t.group_id, t.unknown, t.cancel_requested
), told as (
  insert into history (task, origin, state, attempt, node, detail, at)
  select id, 'pending', state, attempts, :node::bigint, :detail::text, changed_at from kept
), counted as (
  insert into task_group_counts (group_id, outcome, n)
  select group_id, tidings_group_result(state, unknown, cancel_requested), count(*) from kept
  where group_id is not null and state <> 'pending' group by 1, 2
), tallied as (
  insert into attempt_tallies (at, queue, outcome, n, ms)
  select coalesce(:now::bigint, tidings_now()) / 60000000 * 60000000, queue, 'unknown', count(*), 0 from kept group by queue
)
select id from kept
