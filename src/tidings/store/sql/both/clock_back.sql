-- The clock was set back by more than :least. A row back means that nobody else has dealt with it.
update nodes set seen_at = :at
where seen_at - :least > :at or (id = :me and exists (
  select 1 from tasks t where t.id = (select max(id) from tasks) and t.state = 'pending'
    and t.changed_at - :least > :at))
returning id
