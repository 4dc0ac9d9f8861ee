-- Messages sent by day and queue since a day, the newest first; the latest minutes are not in their day yet.
select day, queue, cast(sum(sent) as bigint) as sent, cast(sum(late) as bigint) as late from (
  select day, queue, sent, late from daily_deliveries where day >= :since
  union all
  select at / 86400000000 * 86400000000, queue, case when outcome = 'done' then n else 0 end,
    case when outcome = 'sent_late' then n else 0 end
  from attempt_tallies where not packed and at >= :since and outcome in ('done', 'sent_late')) found
where queue = coalesce(cast(:channel as text), queue)
group by day, queue order by day desc, queue limit :limit
