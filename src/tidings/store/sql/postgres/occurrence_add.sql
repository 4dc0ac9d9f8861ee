-- Lines of the log; one of them for each occurrence, ever. Own file: a list as JSON.
insert into occurrences (schedule, at, recorded_at, outcome, made, detail)
select l.schedule, l.at, (select coalesce(cast(:now as bigint), tidings_now())), l.outcome, l.made, l.detail
from jsonb_to_recordset(cast(:lines as jsonb)) as l(schedule text, at bigint, outcome text, made text, detail text)
