-- Where a walk over dead letters is after so many of them, and how many of them are to be retried.
select max(w.id) as place, count(*) as seen,
  coalesce(sum(case when w.lot = :lot and (:held or not w.unknown) then 1 else 0 end), 0) as found
from (select id, lot, unknown from tasks
      where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after order by id limit :limit) w
