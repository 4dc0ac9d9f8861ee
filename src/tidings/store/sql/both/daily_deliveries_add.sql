-- Add the counts of past minutes to their day; attempt_tally_drop deletes what was added, in the same transaction.
insert into daily_deliveries (day, queue, sent, late)
select at / 86400000000 * 86400000000, queue,
  sum(case when outcome = 'done' then n else 0 end), sum(case when outcome = 'sent_late' then n else 0 end)
from attempt_tallies where not packed and at < :before and outcome in ('done', 'sent_late')
group by at / 86400000000 * 86400000000, queue
on conflict (day, queue) do update
set sent = daily_deliveries.sent + excluded.sent, late = daily_deliveries.late + excluded.late
