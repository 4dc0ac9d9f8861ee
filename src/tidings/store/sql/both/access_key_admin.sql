-- Whether there is a key that runs the engine.
select id from api_keys where role = 'admin' and tenant = 'default' and revoked_at is null limit 1
