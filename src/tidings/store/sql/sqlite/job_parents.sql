-- Which of these records will be in the target if all goes well. Own file: a list goes in as JSON, which each database
-- reads in its own way.
select k.type, k.source_id from json_each(:asked) g cross join job_records k
where k.job = :job and k.type = g.value ->> 'type' and k.source_id = g.value ->> 'id' and k.round = :round
  and k.state not in ('rejected', 'failed', 'skipped', 'conflict', 'waiting')
