-- Reserve the next instant at which an endpoint may be called. No row back: it is parked, or its line is too long.
update model_endpoints set next_at = case when next_at > :now then next_at else :now end + interval
where name = :name and blocked_until <= :now and next_at <= :horizon
returning next_at - interval as at
