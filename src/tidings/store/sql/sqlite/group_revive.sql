-- Start failed ones afresh. Own file: lot_revive_tell has written their history.
update tasks set state = 'pending', attempts = 0, throttles = 0, crashes = 0, category = null, cancel_requested = false,
  due_at = :due_at + f.place * :gap, expires_at = :due_at + f.place * :gap + :expire_after,
  changed_at = coalesce(:now, tidings_now())
from (select id as failed, row_number() over (order by id) as place from tasks
      where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after and id <= :upto
        and group_id = :group_id and (:unknown or not unknown)) f
where id = f.failed and state = 'failed'
