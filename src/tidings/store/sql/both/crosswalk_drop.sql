-- A record of the target that was taken out again.
delete from crosswalk where pair = :pair and type = :type and source_id = :source_id and target_id = :target_id
