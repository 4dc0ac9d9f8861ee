-- Change a schedule, if nobody else has since it was read.
update schedules set name = :name, rule = :rule, timezone = :timezone, creates = :creates, body = :body, catch_up = :catch_up,
  catch_up_window = :catch_up_window, overlap = :overlap, tags = :tags, channel = :channel, recipient = :recipient, held_at = null, start_at = :start_at, end_at = :end_at, most = :most, next_at = :next_at, problem = null,
  version = version + 1, changed_at = :at
where id = :id and tenant = :tenant and version = :version
returning id
