-- Forget a schedule that has ended.
delete from schedules where id = :id and tenant = :tenant and state = 'ended' returning id
