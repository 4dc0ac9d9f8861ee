-- Write down changes with what was and what becomes; the same key again gives nothing. Their days are held, and no two are of one day.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into shift_changes (key, calendar, day, squad, who, at, action, begins, ends, was, became)
select g.key, :calendar, g.day, g.squad, coalesce((select e.who from effects e where e.key = g.key), ''),
  coalesce(cast(:now as bigint), tidings_now()), g.action, g.begins, g.ends, d.slots,
  substr(d.slots, 1, g.first) || g.fill || substr(d.slots, g.last + 1)
from json_to_recordset(cast(:changes as json)) g(key text, day text, squad text, action text, begins text, ends text, first int,
    last int, fill text)
  cross join lateral (select coalesce((select l.slots from shift_lines l
    where l.calendar = :calendar and l.day = g.day and l.squad = g.squad), cast(:blank as text)) as slots) d
where not exists (select 1 from shift_changes c where c.key = g.key)
