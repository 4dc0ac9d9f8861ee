-- Rows to look at, with the state of their message, schedule or broadcast.
select r.key, r.kind, r.version, r.written, r.before, r.undone, t.state, t.unknown, t.due_at, t.changed_at,
  b.state as broadcast, b.reason, b.scheduled_at, s.state as schedule, s.last_at, s.next_at, s.problem,
  (select h.detail from history h where h.task = t.id and h.detail is not null order by h.at desc limit 1) as detail
from (select key, kind, made, recipient, version, written, before, undone from import_rows
      where source = :source and check_at <= coalesce(cast(:now as bigint), tidings_now()) order by check_at limit :limit) r
left join broadcasts b on r.kind = 'broadcast' and b.id = r.made
left join schedules s on r.kind = 'schedule' and s.id = r.made
left join tasks t on t.id = coalesce((select m.task from messages m where m.id = r.made),
  (select m.task from messages m where m.group_id = b.group_id and m.recipient = r.recipient))
