-- Counts of tasks: scheduled, waiting, processing, dead letters (all and unknown outcomes).
-- Each is counted up to a bound, on the index that has it.
select
  (select count(*) from (select 1 as one from tasks where state = 'pending' and head limit :most) p) as heads,
  (select count(*) from (select head from tasks where ordering_key is not null and state = 'pending' limit :most) l
   where not l.head) as lined,
  (select count(*) from (select id from tasks where state = 'processing' limit :most) w) as processing,
  (select count(*) from (select id from tasks
     where state = 'failed' and state >= 'expired' and state <= 'failed' limit :most) f) as dead,
  (select count(*) from (select unknown from tasks
     where state = 'failed' and state >= 'expired' and state <= 'failed' limit :most) u where u.unknown) as unknown
