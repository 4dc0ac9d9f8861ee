-- Make the tasks of a part's next recipients, in their order: paced one behind the other, each spread a little.
insert into tasks (id, tenant, queue, kind, priority, due_at, changed_at, expires_at, max_attempts, group_id)
select p.task, p.tenant, p.channel, :kind, cast(:priority as smallint), p.due_at, p.now, p.due_at + :expire_after,
  cast(:max_attempts as smallint), cast(:group_id as bigint)
from (select m.task, m.tenant, m.channel, (select coalesce(cast(:now as bigint), tidings_now())) as now,
    cast(:due_at as bigint) + (row_number() over (order by m.task) - 1) * cast(:gap as bigint)
      + (m.task * cast(:stride as bigint)) % (cast(:spread as bigint) + 1) as due_at
  from (select task, tenant, channel from messages
        where group_id = :group_id and part = :part and task > :after order by task limit :n) m) p
