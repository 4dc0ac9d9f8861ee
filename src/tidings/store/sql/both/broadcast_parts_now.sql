-- Every part may begin at once.
update broadcast_parts set starts_at = null where group_id = :group_id
