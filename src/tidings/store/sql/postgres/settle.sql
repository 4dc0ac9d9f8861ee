-- Move claimed tasks on; a row whose claim is no longer ours does not change and does not come back.
-- Own file: arrays.
with given as (
  select * from unnest(:ids::bigint[], :claims::int[], :states::text[], :attempts::smallint[], :dues::bigint[],
    :categories::text[], :details::text[], :unknowns::bool[], :throttles::smallint[], :crashes::smallint[])
    as g(id, claim_no, state, attempts, due_at, category, detail, unknown, throttles, crashes)
), kept as (
  update tasks t set
    state = case when g.state = 'pending' and t.cancel_requested then 'cancelled' else g.state end,
    attempts = g.attempts, throttles = g.throttles, crashes = g.crashes, due_at = coalesce(g.due_at, t.due_at),
    category = g.category, unknown = t.unknown or g.unknown, node = null,
    changed_at = coalesce(:now::bigint, tidings_now())
  from given g
  where t.id = g.id and t.claim_no = g.claim_no
    and t.state is not distinct from 'processing' and t.node is not distinct from :node  -- found by id, never by node
  returning t.id, t.state, t.attempts, g.category, g.detail, t.changed_at, t.group_id, t.unknown, t.cancel_requested
), told as (
  insert into history (task, origin, state, attempt, node, category, detail, at)
  select id, 'processing', state, attempts, :node, category, detail, changed_at from kept
), counted as (
  insert into task_group_counts (group_id, outcome, n)
  select group_id, tidings_group_result(state, unknown, cancel_requested), count(*) from kept
  where group_id is not null and state <> 'pending' group by 1, 2
), tallied as (
  insert into attempt_tallies (at, queue, outcome, n, ms)
  select coalesce(:now::bigint, tidings_now()) / 60000000 * 60000000, c.queue, c.outcome, c.n, c.ms
  from unnest(:t_queues::text[], :t_whats::text[], :t_ns::int[], :t_mss::bigint[]) c(queue, outcome, n, ms)
  where exists (select 1 from kept) or cardinality(:ids::bigint[]) = 0  -- a repetition counts nothing
)
select id, state from kept
