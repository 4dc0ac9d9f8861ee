-- The broadcast of a recipient, by the id of its message.
select b.id as broadcast, b.state, m.group_id, m.part, m.task from messages m join broadcasts b on b.group_id = m.group_id
where m.id = :id and m.tenant = :tenant and m.part is not null
