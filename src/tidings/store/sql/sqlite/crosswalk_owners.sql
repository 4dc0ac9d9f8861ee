-- Whose these records of the target are. Own file: a list goes in as JSON, which each database reads in its own way.
select x.target_id, x.source_id from json_each(:ids) g cross join crosswalk x
where x.pair = :pair and x.type = :type and x.target_id = g.value
