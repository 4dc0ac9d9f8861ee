-- Give the turn of each of these order keys to its first pending task, as `promote` does for one.
-- Own file: arrays. Rows are found by id and questions asked key by key, so that no plan goes through a table that has grown since.
update tasks set head = true where id = any(array(
  select n.id from unnest(:queues::text[], :ordering_keys::text[]) k(queue, ordering_key)
    cross join lateral (select id from tasks where queue = k.queue and ordering_key = k.ordering_key and state = 'pending'
      order by first_due, id limit 1) n
  where (select 1 from tasks x
      where x.queue = k.queue and x.ordering_key = k.ordering_key and x.ordering_key is not null
        and (x.state = 'processing' or (x.state = 'pending' and x.head)) limit 1) is null
    and (select 1 from tasks f join queues q on q.name = f.queue
      where f.queue = k.queue and f.ordering_key = k.ordering_key and f.ordering_key is not null
        and f.state = 'failed' and q.stop_on_failure limit 1) is null))
