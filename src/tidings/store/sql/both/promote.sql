-- Give the turn of an order key to its first pending task, if nobody has it.
-- A key whose queue stops on failure keeps still while one of its tasks is failed.
update tasks set head = true
where id = (select n.id from tasks n
            where n.queue = :queue and n.ordering_key = :ordering_key and n.state = 'pending'
            order by n.first_due, n.id limit 1)
  and not exists (select 1 from tasks x
                  where x.queue = :queue and x.ordering_key = :ordering_key and x.ordering_key is not null
                    and (x.state = 'processing' or (x.state = 'pending' and x.head)))
  and not exists (select 1 from tasks f join queues q on q.name = f.queue
                  where f.queue = :queue and f.ordering_key = :ordering_key and f.ordering_key is not null
                    and f.state = 'failed' and q.stop_on_failure)
