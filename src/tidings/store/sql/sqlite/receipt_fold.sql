-- Save new facts of receipts; a repeat changes nothing and is not returned. Own file: JSON as rows.
update receipts set
  task = coalesce(receipts.task, g.task),
  open = receipts.open or coalesce((select t.state = 'processing' from tasks t where t.id = g.task), false),
  delivered_at = case when receipts.delivered_at <= g.delivered_at then receipts.delivered_at
    else coalesce(g.delivered_at, receipts.delivered_at) end,
  read_at = coalesce(receipts.read_at, g.read_at),
  undelivered_at = coalesce(receipts.undelivered_at, g.undelivered_at),
  reason = case when receipts.undelivered_at is null then g.reason else receipts.reason end,
  category = case when receipts.undelivered_at is null then g.category else receipts.category end
from (select r.value ->> 'channel' as channel, r.value ->> 'name' as name, m.task, r.value ->> 'delivered_at' as delivered_at,
    r.value ->> 'read_at' as read_at, r.value ->> 'undelivered_at' as undelivered_at, r.value ->> 'reason' as reason,
    r.value ->> 'category' as category
  from json_each(:rows) r
  left join messages m on m.id = r.value ->> 'message' and m.channel = r.value ->> 'channel') g
where receipts.channel = g.channel and receipts.name = g.name
  and ((receipts.task is null and g.task is not null)
    or (g.delivered_at is not null and (receipts.delivered_at is null or receipts.delivered_at > g.delivered_at))
    or (g.read_at is not null and receipts.read_at is null)
    or (g.undelivered_at is not null and receipts.undelivered_at is null))
returning receipts.channel, receipts.name, receipts.task
