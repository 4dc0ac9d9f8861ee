-- Which of these records will be in the target if all goes well. Own file: a list goes in as JSON, which each database
-- reads in its own way.
select k.type, k.source_id from json_to_recordset(cast(:asked as json)) as g(type text, id text)
  cross join lateral (select type, source_id from job_records where job = :job and type = g.type and source_id = g.id
    and round = :round and state not in ('rejected', 'failed', 'skipped', 'conflict', 'waiting') offset 0) k
