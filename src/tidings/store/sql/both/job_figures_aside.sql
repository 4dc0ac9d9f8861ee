-- What the newest jobs have set aside or in doubt, by tenant, state and kind of error.
select j.tenant, r.state, r.failure, count(*) as n
from (select n, tenant, round from jobs order by n desc limit :limit) j
  join job_records r on r.job = j.n and r.round = j.round and r.fingerprint is not null
group by j.tenant, r.state, r.failure
