-- A node that left, or a dead one that holds nothing any more.
update nodes set state = 'gone'
where id = :id and state <> 'gone' and not exists (select 1 from tasks where node = :id and state = 'processing')
returning id
