-- Who is who, as written just now. Own file: a list goes in as JSON, which each database reads in its own way.
insert into crosswalk (pair, type, source_id, target_id, hash, job, changed_at)
select :pair, :type, r.id, r.target_id, r.hash, :job, coalesce(cast(:now as bigint), tidings_now())
from json_to_recordset(cast(:rows as json)) as r(id text, target_id text, hash text)
on conflict (source_id, type, pair) do update set target_id = excluded.target_id, hash = excluded.hash, job = excluded.job,
  changed_at = excluded.changed_at
