-- Whether there is a key that runs the engine; an expired one counts, so that no door opens by itself.
select id from api_keys where role = 'admin' and tenant = 'default' and revoked_at is null limit 1
