-- What some days of the calendar say. Own file: a list goes in as JSON, which each database reads in its own way.
select l.day, l.squad, l.slots from json_each(:days) g cross join shift_lines l where l.calendar = :calendar and l.day = g.value
