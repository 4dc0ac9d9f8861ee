-- Reserve the next slot of an endpoint. No row: it is blocked, or its queue is too long.
update model_endpoints set next_at = case when next_at > :now then next_at else :now end + interval
where name = :name and blocked_until <= :now and next_at <= :horizon
returning next_at - interval as at
