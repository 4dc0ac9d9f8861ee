-- The target's ids of these records, and what they were written as. Own file: a list goes in as JSON, which each database
-- reads in its own way.
select x.type, x.source_id, x.target_id, x.hash from json_each(:asked) g cross join crosswalk x
where x.pair = :pair and x.type = g.value ->> 'type' and x.source_id = g.value ->> 'id'
