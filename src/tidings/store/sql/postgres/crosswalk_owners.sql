-- Whose these records of the target are. Own file: a list goes in as JSON, which each database reads in its own way.
select x.target_id, x.source_id from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select target_id, source_id from crosswalk
    where pair = :pair and type = :type and target_id = g.value offset 0) x
