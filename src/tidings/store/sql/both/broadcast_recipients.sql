-- Recipients in the order of the upload, each with its state and the last detail of its history; a bounded walk.
-- One without a task has not been taken yet, or never was: `untaken` is the word for it.
select r.*, (select h.detail from history h where h.task = r.task and h.detail is not null order by h.at desc limit 1) as detail
from (select m.task, m.id, m.recipient, m.part, m.contact, m.variables, m.timezone, m.accepted_at, t.attempts, t.category, t.due_at,
    t.changed_at, t.expires_at,
    case when t.id is null then cast(:untaken as text) when t.state = 'pending' then 'waiting' when t.state = 'done' then 'sent'
      when t.state = 'failed' and t.unknown then 'unknown' when t.state = 'cancelled' and not t.cancel_requested then 'skipped'
      else t.state end as standing
  from (select task, id, recipient, part, contact, variables, timezone, accepted_at from messages
        where group_id = :group_id and part is not null and (part, task) > (cast(:part as smallint), cast(:after as bigint))
        order by part, task limit :window) m
  left join tasks t on t.id = m.task) r
where cast(:state as text) is null or r.standing = :state
order by r.part, r.task limit :limit
