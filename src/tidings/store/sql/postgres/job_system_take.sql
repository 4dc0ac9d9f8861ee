-- Reserve send instants: as many as are wanted and lie within the horizon. Own file: SQLite calls greatest and least max
-- and min.
update job_systems set
  taken = case when step = 0 then cast(:wanted as bigint) else greatest(0, least(cast(:wanted as bigint),
    (cast(:at as bigint) + cast(:ahead as bigint) - greatest(next_at, :at) + step) / step)) end,
  next_at = greatest(next_at, :at) + step * case when step = 0 then 0 else greatest(0, least(cast(:wanted as bigint),
    (cast(:at as bigint) + cast(:ahead as bigint) - greatest(next_at, :at) + step) / step)) end
where name = :name and blocked_until <= :at
returning taken, next_at, step
