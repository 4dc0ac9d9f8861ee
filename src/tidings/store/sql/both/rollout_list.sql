-- How much of each channel's traffic really goes out, and since when.
select q.name, q.mode, q.share, (select max(r.at) from rollouts r where r.channel = q.name) as changed_at
from queues q order by q.name
