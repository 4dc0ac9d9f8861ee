-- Other options, by the one who has seen the newest.
update broadcasts set options = :options, version = version + 1, paced_to = null,
  look_at = case when state = 'pending' then coalesce(cast(:now as bigint), tidings_now()) else look_at end,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where lot = :lot and version = :version
returning lot
