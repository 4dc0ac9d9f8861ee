-- Attempts at records. Own file: a list goes in as JSON, which each database reads in its own way.
insert into job_log (record, at, what, code, reason)
select r.value ->> 'seq', coalesce(cast(:now as bigint), tidings_now()), r.value ->> 'what', r.value ->> 'code', r.value ->> 'reason'
from json_each(:rows) r
