-- Start failed ones afresh, each with its history line. Own file: one statement writes both.
with risen as (
  update tasks t set state = 'pending', attempts = 0, throttles = 0, crashes = 0, category = null, cancel_requested = false,
    due_at = :due_at + f.place * :gap, expires_at = :due_at + f.place * :gap + :expire_after,
    changed_at = coalesce(:now::bigint, tidings_now())
  from (select id, row_number() over (order by id) as place from tasks
        where state = 'failed' and state >= 'expired' and state <= 'failed' and id > :after and id <= :upto
          and group_id = :group_id and (:unknown or not unknown)) f
  where t.id = f.id and t.state is not distinct from 'failed'
  returning t.id, t.changed_at
)
insert into history (task, origin, state, attempt, detail, at)
select id, 'failed', 'pending', 0, :reason, changed_at from risen
