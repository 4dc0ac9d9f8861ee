-- A new schedule.
insert into schedules (id, tenant, name, state, rule, timezone, creates, body, catch_up, catch_up_window, overlap, tags,
  channel, recipient, start_at, end_at, most, next_at,
  created_at, changed_at)
values (:id, :tenant, :name, 'active', :rule, :timezone, :creates, :body, :catch_up, :catch_up_window, :overlap, :tags,
  :channel, :recipient, :start_at, :end_at, :most, :next_at,
  :at, :at)
