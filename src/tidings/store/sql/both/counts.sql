-- How many tasks wait, are at work, and are dead letters (certain, in doubt); each counted up to a bound.
select
  (select count(*) from (select id from tasks where state = 'pending'
     and state in ('pending', 'failed', 'cancelled', 'expired') limit :most) p) as pending,
  (select count(*) from (select id from tasks where state = 'processing' limit :most) w) as processing,
  (select count(*) from (select id from tasks where state = 'failed'
     and state in ('pending', 'failed', 'cancelled', 'expired') limit :most) f) as dead,
  (select count(*) from (select unknown from tasks where state = 'failed'
     and state in ('pending', 'failed', 'cancelled', 'expired') limit :most) u where u.unknown) as held
