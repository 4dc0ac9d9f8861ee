-- Who is who, as written just now: id, target's id, hash. Own file: a list goes in as JSON, which each database reads in
-- its own way.
insert into crosswalk (pair, type, source_id, target_id, hash, job, changed_at)
select :pair, :type, r.value ->> 0, r.value ->> 1, r.value ->> 2, :job, coalesce(cast(:now as bigint), tidings_now())
from json_array_elements(cast(:rows as json)) r
on conflict (source_id, type, pair) do update set target_id = excluded.target_id, hash = excluded.hash, job = excluded.job,
  changed_at = excluded.changed_at
