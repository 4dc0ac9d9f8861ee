-- Attempts at records: place, what, code, reason. Own file: a list goes in as JSON, which each database reads in its own way.
insert into job_log (record, at, what, code, reason)
select r.value ->> 0, coalesce(cast(:now as bigint), tidings_now()), r.value ->> 1, r.value ->> 2, r.value ->> 3
from json_each(:rows) r
