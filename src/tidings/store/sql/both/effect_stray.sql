-- Commands whose task has ended in another way than by their own result.
select e.task, e.plan, e.tenant, e.conversation, e.state from effects e left join tasks t on t.id = e.task
where not e.reported and (t.id is null or t.state not in ('pending', 'processing')) order by e.task limit :limit
