-- Who is who, by the id on one of the sides.
select x.type, x.source_id, x.target_id, x.hash, x.changed_at, j.id as job from crosswalk x join jobs j on j.n = x.job
where x.pair = :pair and x.type = :type
  and (x.source_id = :source_id or (cast(:source_id as text) is null and x.target_id = :target_id))
order by x.source_id limit :limit
