-- Write down changes with what was and what becomes; the same key again gives nothing. Their days are held, and no two are of one day.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into shift_changes (key, calendar, day, squad, who, at, action, begins, ends, was, became)
select d.key, :calendar, d.day, d.squad, coalesce((select e.who from effects e where e.key = d.key), ''),
  coalesce(cast(:now as bigint), tidings_now()), d.action, d.begins, d.ends, d.slots,
  substr(d.slots, 1, d.first) || d.fill || substr(d.slots, d.last + 1)
from (select g.value ->> 'key' as key, g.value ->> 'day' as day, g.value ->> 'squad' as squad, g.value ->> 'action' as action,
    g.value ->> 'begins' as begins, g.value ->> 'ends' as ends, g.value ->> 'first' as first, g.value ->> 'last' as last,
    g.value ->> 'fill' as fill, coalesce((select l.slots from shift_lines l where l.calendar = :calendar
      and l.day = g.value ->> 'day' and l.squad = g.value ->> 'squad'), :blank) as slots
  from json_each(:changes) g) d
where not exists (select 1 from shift_changes c where c.key = d.key)
