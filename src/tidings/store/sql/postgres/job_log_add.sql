-- Attempts at records: place, what, code, reason. Own file: a list goes in as JSON, which each database reads in its own way.
insert into job_log (record, at, what, code, reason)
select cast(r.value ->> 0 as bigint), coalesce(cast(:now as bigint), tidings_now()), r.value ->> 1, r.value ->> 2, r.value ->> 3
from json_array_elements(cast(:rows as json)) r
