-- Whether there has ever been a key, in the database or in the settings: no-key mode stays closed from then on.
select 1 as found where exists (select 1 from api_keys) or exists (select 1 from configured_keys)
