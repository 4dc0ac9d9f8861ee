-- Schedules that should have fired before an instant and did not, longest ago first.
select id, tenant, name, next_at from schedules where next_at is not null and next_at <= :before order by next_at, id limit :limit
