-- Make the calendar say what changes say, as far as they are the newest of their line: the same key again changes nothing.
-- Own file: a list goes in as JSON, which each database reads in its own way.
insert into shift_lines (calendar, day, squad, slots, changed_at)
select c.calendar, c.day, c.squad, c.became, c.at from json_each(:keys) g cross join shift_changes c
where c.key = g.value and c.id = (select n.id from shift_changes n
  where n.calendar = c.calendar and n.day = c.day and n.squad = c.squad order by n.id desc limit 1)
on conflict (calendar, day, squad) do update set slots = excluded.slots, changed_at = excluded.changed_at
