-- The next open tasks of a group, by id; `parked` leaves out those of one queue.
select id from tasks
where group_id = :group_id and state = 'pending' and id > :after and (cast(:parked as text) is null or queue <> :parked)
order by id limit :limit
