-- Schedules whose last run was missed and not made up for; only what was noticed since an instant.
select s.id, s.tenant, s.name, o.at, o.detail from occurrences o join schedules s on s.id = o.schedule and s.last_at = o.at
where o.outcome = 'missed' and o.recorded_at >= :since and s.state <> 'paused' order by o.recorded_at, s.id limit :limit
