-- When these recipients are free. Own file: a list goes in as JSON, which each database reads in its own way.
select p.key, p.next_at from json_array_elements_text(cast(:keys as json)) as w(key)
  cross join lateral (select key, next_at from recipient_rate_limits where queue = :queue and key = w.key offset 0) p
