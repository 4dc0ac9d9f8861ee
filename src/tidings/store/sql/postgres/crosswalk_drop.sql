-- Records of the target that were taken out again: id, target's id. Own file: a list goes in as JSON, which each database
-- reads in its own way.
delete from crosswalk x using json_array_elements(cast(:rows as json)) r
where x.pair = :pair and x.type = :type and x.source_id = r.value ->> 0 and x.target_id = r.value ->> 1
