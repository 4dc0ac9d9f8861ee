-- Attempts at records. Own file: a list goes in as JSON, which each database reads in its own way.
insert into job_log (record, at, what, code, reason)
select r.seq, coalesce(cast(:now as bigint), tidings_now()), r.what, r.code, r.reason
from json_to_recordset(cast(:rows as json)) as r(seq bigint, what text, code text, reason text)
