-- Reserve send instants: as many as are wanted and lie within the horizon. Own file: greatest and least are max and min here.
update job_systems set
  taken = case when step = 0 then :wanted else max(0, min(:wanted, (:at + :ahead - max(next_at, :at) + step) / step)) end,
  next_at = max(next_at, :at)
    + step * case when step = 0 then 0 else max(0, min(:wanted, (:at + :ahead - max(next_at, :at) + step) / step)) end
where name = :name and blocked_until <= :at
returning taken, next_at, step
