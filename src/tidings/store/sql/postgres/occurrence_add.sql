-- Lines of the log; one of them for each occurrence, ever. Own file: a list as JSON.
insert into occurrences (schedule, at, recorded_at, outcome, created, detail)
select l.schedule, l.at, (select coalesce(cast(:now as bigint), tidings_now())), l.outcome, l.created, l.detail
from jsonb_to_recordset(cast(:lines as jsonb)) as l(schedule text, at bigint, outcome text, created text, detail text)
