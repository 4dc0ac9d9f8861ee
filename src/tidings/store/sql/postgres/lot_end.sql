-- End what waits, each with its history line. Own file: one statement writes both.
with gone as (
  update tasks set state = :state, cancel_asked = cancel_asked or :asked,
    changed_at = coalesce(:now::bigint, tidings_now())
  where lot = :lot and state = 'pending' and id > :after and id <= :upto
  returning id, tries, changed_at
)
insert into history (task, origin, state, try, detail, at)
select id, 'pending', :state, tries, :reason, changed_at from gone
