-- When these recipients are free from now on. Own file: a list goes in as JSON, which each database reads in its own way.
insert into recipient_rate_limits (queue, key, next_at)
select :queue, f.value ->> 'key', f.value ->> 'at' from json_each(:free) f where true
on conflict (queue, key) do update set next_at = excluded.next_at
