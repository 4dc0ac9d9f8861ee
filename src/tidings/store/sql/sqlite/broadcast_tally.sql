-- The exact standing of these broadcasts, at one moment. Own file: JSON is taken apart differently.
with wanted as materialized (
  select value as lot from json_each(:lots)
), ended as materialized (
  select c.lot, count(*) as pieces,
    sum(case when c.what = 'done' then c.n else 0 end) as sent, sum(case when c.what = 'failed' then c.n else 0 end) as failed,
    sum(case when c.what = 'held' then c.n else 0 end) as held,
    sum(case when c.what = 'cancelled' then c.n else 0 end) as cancelled,
    sum(case when c.what = 'expired' then c.n else 0 end) as expired,
    sum(case when c.what = 'skipped' then c.n else 0 end) as skipped
  from wanted w cross join lot_counts c on c.lot = w.lot group by c.lot
), working as materialized (
  select t.lot, count(*) as n from tasks t indexed by tasks_held
  where t.state = 'processing' and t.lot is not null group by t.lot
)
select b.lot, b.state, b.total, b.taken, coalesce(e.pieces, 0) as pieces, coalesce(w.n, 0) as processing,
  coalesce(e.sent, 0) as sent, coalesce(e.failed, 0) as failed, coalesce(e.held, 0) as held,
  coalesce(e.cancelled, 0) as cancelled, coalesce(e.expired, 0) as expired, coalesce(e.skipped, 0) as skipped
from wanted x cross join broadcasts b on b.lot = x.lot
left join ended e on e.lot = b.lot left join working w on w.lot = b.lot
