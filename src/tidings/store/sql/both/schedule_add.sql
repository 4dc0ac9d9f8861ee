-- A new schedule.
insert into schedules (id, tenant, name, state, rule, zone, makes, body, missed, grace, start_at, end_at, most, next_at,
  created_at, changed_at)
values (:id, :tenant, :name, 'active', :rule, :zone, :makes, :body, :missed, :grace, :start_at, :end_at, :most, :next_at,
  :at, :at)
