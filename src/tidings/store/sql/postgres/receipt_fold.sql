-- Save new facts of receipts; a repeat changes nothing and is not returned. Own file: JSON as rows.
update receipts r set
  task = coalesce(r.task, m.task),
  open = r.open or coalesce((select t.state = 'processing' from tasks t where t.id = m.task), false),
  delivered_at = least(r.delivered_at, g.delivered_at),
  read_at = coalesce(r.read_at, g.read_at),
  undelivered_at = coalesce(r.undelivered_at, g.undelivered_at),
  reason = case when r.undelivered_at is null then g.reason else r.reason end,
  category = case when r.undelivered_at is null then g.category else r.category end
from json_to_recordset(:rows::json) g(channel text, name text, message text, delivered_at bigint, read_at bigint,
    undelivered_at bigint, reason text, category text)
left join messages m on m.id = g.message and m.channel = g.channel
where r.channel = g.channel and r.name = g.name
  and ((r.task is null and m.task is not null)
    or (g.delivered_at is not null and (r.delivered_at is null or r.delivered_at > g.delivered_at))
    or (g.read_at is not null and r.read_at is null)
    or (g.undelivered_at is not null and r.undelivered_at is null))
returning r.channel, r.name, r.task
