-- When the pump looks again (null: never), unless somebody wants it sooner.
update broadcasts set look_at = :look_at where lot = :lot and look_at = :leased
