-- Migration jobs that wait.
update jobs set
  parked_until = case when parked_until > :at
    then parked_until - :back else parked_until end,
  look_at = case when look_at > :at
    then look_at - :back else look_at end
where parked_until > :at or look_at > :at
