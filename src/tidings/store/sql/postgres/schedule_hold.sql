-- Hold these schedules if all of them are still as they were read, and none of these occurrences has run.
-- Own file: rows are locked, and lists are JSON in another dialect. `is not distinct from` keeps the index on the time out.
select 1 as held
where cast(:n as bigint) = (
    select count(*) from (
      select s.id from jsonb_to_recordset(cast(:moves as jsonb)) as g(id text, version int, due bigint)
      join schedules s on s.id = g.id and s.version = g.version and s.next_at is not distinct from g.due
      order by s.id for update of s
    ) held)
  and not exists (
    select 1 from jsonb_to_recordset(cast(:lines as jsonb)) as l(schedule text, at bigint)
    join occurrences o on o.schedule = l.schedule and o.at = l.at)
