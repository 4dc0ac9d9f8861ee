-- What the newest jobs have quarantined or with an unknown outcome, by tenant, state and kind of error. The cross join keeps the order:
-- these jobs first, then their records.
select j.tenant, r.state, r.failure, count(*) as n
from (select n, tenant, round from jobs order by n desc limit :limit) j cross join job_records r
where r.job = j.n and r.round = j.round and r.fingerprint is not null
group by j.tenant, r.state, r.failure
