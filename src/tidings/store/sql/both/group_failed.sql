-- Where a walk over dead letters is after so many of them, and how many of them are to be retried.
select max(w.id) as place, count(*) as seen,
  coalesce(sum(case when w.group_id = :group_id and (:unknown or not w.unknown) then 1 else 0 end), 0) as found
from (select id, group_id, unknown from tasks
      where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after order by id limit :limit) w
