-- Move waiting tasks that may have been sent on the lost copy: flagged as unknown, or failed where nobody may send them
-- again. Own file: arrays.
with kept as (
  update tasks t set state = g.state, unknown = true, category = null, due_at = coalesce(g.due_at, t.due_at),
    head = t.head and (g.state = 'pending' or t.order_key is null), changed_at = coalesce(:now::bigint, tidings_now())
  from unnest(:ids::bigint[], :claims::int[], :states::text[], :dues::bigint[]) g(id, claim_no, state, due_at)
  where t.id = g.id and t.claim_no = g.claim_no and t.state is not distinct from 'pending'
  returning t.id, t.queue, t.state, t.tries, t.changed_at, t.lot, t.unknown, t.cancel_asked
), told as (
  insert into history (task, origin, state, try, node, detail, at)
  select id, 'pending', state, tries, :node::bigint, :detail::text, changed_at from kept
), counted as (
  insert into lot_counts (lot, what, n)
  select lot, tidings_counted(state, unknown, cancel_asked), count(*) from kept
  where lot is not null and state <> 'pending' group by 1, 2
), tallied as (
  insert into tallies (at, queue, what, n, ms)
  select coalesce(:now::bigint, tidings_now()) / 60000000 * 60000000, queue, 'unknown', count(*), 0 from kept group by queue
)
select id from kept
