-- Records of the target that were taken out again: id, target's id. Own file: a list goes in as JSON, which each database
-- reads in its own way.
delete from crosswalk where pair = :pair and type = :type
  and (source_id, target_id) in (select r.value ->> 0, r.value ->> 1 from json_each(:rows) r)
