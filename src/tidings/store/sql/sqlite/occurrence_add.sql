-- Lines of the log; one of them for each occurrence, ever. Own file: a list as JSON.
insert into occurrences (schedule, at, recorded_at, outcome, created, detail)
select l.value ->> 'schedule', l.value ->> 'at', coalesce(:now, tidings_now()), l.value ->> 'outcome', l.value ->> 'created',
  l.value ->> 'detail'
from json_each(:lines) l
