-- Whether all of these schedules are still as they were read, and none of these occurrences has run.
-- Own file: one writer needs no locks, and lists are JSON in another dialect.
select 1 as held
where :n = (
    select count(*) from json_each(:moves) g
    join schedules s on s.id = g.value ->> 'id' and s.version = g.value ->> 'version' and s.next_at = g.value ->> 'due')
  and not exists (
    select 1 from json_each(:lines) l
    join occurrences o on o.schedule = l.value ->> 'schedule' and o.at = l.value ->> 'at')
