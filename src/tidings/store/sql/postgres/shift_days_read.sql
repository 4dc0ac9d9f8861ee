-- What some days of the calendar say. Own file: a list goes in as JSON, which each database reads in its own way.
select l.day, l.squad, l.slots from json_array_elements_text(cast(:days as json)) g
  cross join lateral (select day, squad, slots from shift_lines where calendar = :calendar and day = g.value offset 0) l
