-- Rate limits and waits of the systems of migrations.
update job_systems set
  next_at = case when next_at > :at
    then next_at - :back else next_at end,
  parked_until = case when parked_until > :at
    then parked_until - :back else parked_until end
where next_at > :at or parked_until > :at
