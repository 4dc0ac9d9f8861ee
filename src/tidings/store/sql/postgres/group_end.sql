-- End what waits, each with its history line. Own file: one statement writes both.
with gone as (
  update tasks set state = :state, cancel_requested = cancel_requested or :asked,
    changed_at = coalesce(:now::bigint, tidings_now())
  where group_id = :group_id and state = 'pending' and id > :after and id <= :upto
  returning id, attempts, changed_at
)
insert into history (task, origin, state, attempt, detail, at)
select id, 'pending', :state, attempts, :reason, changed_at from gone
