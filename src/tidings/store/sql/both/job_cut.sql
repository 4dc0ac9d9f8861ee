-- Where the next batch of a type would end, and how many records it would have.
select count(*) as n, min(x.seq) as first, max(x.seq) as last
from (select seq from job_records where job = :job and type = :type and seq > :cut
  and batch is null order by seq limit :limit) x
