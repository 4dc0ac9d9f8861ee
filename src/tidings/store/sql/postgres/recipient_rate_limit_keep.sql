-- When these recipients are free from now on. Own file: a list goes in as JSON, which each database reads in its own way.
insert into recipient_rate_limits (queue, key, next_at)
select cast(:queue as text), f.key, f.at from json_to_recordset(cast(:free as json)) as f(key text, at bigint)
on conflict (queue, key) do update set next_at = excluded.next_at
