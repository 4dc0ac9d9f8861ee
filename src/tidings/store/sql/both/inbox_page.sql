-- What came in, newest first, within a window of places; the state is a view on the task that handles it.
select * from (
  select i.n, i.task, i.id, i.tenant, i.source, i.platform_id, i.conversation, i.chat, i.sender, i.name, i.kind, i.original,
    i.reply_to, i.attachments, i.sent_at, i.received_at, i.speaks_for, i.edited_at, i.deleted_at, i.reason, i.text,
    i.edited_text, t.attempts, t.due_at, t.expires_at, t.changed_at,
    case when i.ended is not null then i.ended when i.task is null or t.id is null then 'expired'
      when t.state = 'cancelled' then 'skipped' when t.state = 'pending' and not t.head then 'received' else t.state end as state
  from inbox i left join tasks t on t.id = i.task
  where i.n < :before and i.n >= :floor and i.tenant = :tenant
    and (cast(:source as text) is null or i.source = :source)
    and (cast(:conversation as text) is null or i.conversation = :conversation)
    and (cast(:sender as text) is null or i.sender = :sender)) v
where cast(:state as text) is null or v.state = :state
order by v.n desc limit :limit
