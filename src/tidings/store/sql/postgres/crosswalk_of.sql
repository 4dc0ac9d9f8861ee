-- The target's ids of these records, and what they were written as. Own file: a list goes in as JSON, which each database
-- reads in its own way.
select x.type, x.source_id, x.target_id, x.hash from json_to_recordset(cast(:asked as json)) as g(type text, id text)
  cross join lateral (select type, source_id, target_id, hash from crosswalk
    where pair = :pair and type = g.type and source_id = g.id offset 0) x
