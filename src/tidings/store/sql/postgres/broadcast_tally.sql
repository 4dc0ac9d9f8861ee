-- The exact standing of these broadcasts, at one moment. Own file: JSON is taken apart differently.
with wanted as materialized (
  select cast(value as bigint) as lot from json_array_elements_text(cast(:lots as json)) j(value)
), ended as materialized (
  select c.lot, count(*) as pieces,
    cast(coalesce(sum(c.n) filter (where c.what = 'done'), 0) as bigint) as sent,
    cast(coalesce(sum(c.n) filter (where c.what = 'failed'), 0) as bigint) as failed,
    cast(coalesce(sum(c.n) filter (where c.what = 'held'), 0) as bigint) as held,
    cast(coalesce(sum(c.n) filter (where c.what = 'cancelled'), 0) as bigint) as cancelled,
    cast(coalesce(sum(c.n) filter (where c.what = 'expired'), 0) as bigint) as expired,
    cast(coalesce(sum(c.n) filter (where c.what = 'skipped'), 0) as bigint) as skipped
  from wanted w join lot_counts c on c.lot = w.lot group by c.lot
), working as materialized (
  select t.lot, count(*) as n from tasks t where t.state = 'processing' and t.lot is not null group by t.lot
)
select b.lot, b.state, b.total, b.taken, coalesce(e.pieces, 0) as pieces, coalesce(w.n, 0) as processing,
  coalesce(e.sent, 0) as sent, coalesce(e.failed, 0) as failed, coalesce(e.held, 0) as held,
  coalesce(e.cancelled, 0) as cancelled, coalesce(e.expired, 0) as expired, coalesce(e.skipped, 0) as skipped
from wanted x join broadcasts b on b.lot = x.lot left join ended e on e.lot = b.lot left join working w on w.lot = b.lot
