-- When these recipients are free. Own file: a list goes in as JSON, which each database reads in its own way.
select p.key, p.next_at from json_each(:keys) w cross join recipient_rate_limits p where p.queue = :queue and p.key = w.value
