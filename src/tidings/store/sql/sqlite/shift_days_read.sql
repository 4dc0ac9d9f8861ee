-- What some days of the calendar say, one row for each day that says something.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select l.day, json_group_object(l.squad, l.slots) as lines from json_each(:days) g cross join shift_lines l
where l.calendar = :calendar and l.day = g.value group by l.day
