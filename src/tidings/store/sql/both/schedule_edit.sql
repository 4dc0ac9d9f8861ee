-- Change a schedule, if nobody else has since it was read.
update schedules set name = :name, rule = :rule, zone = :zone, makes = :makes, body = :body, missed = :missed,
  grace = :grace, start_at = :start_at, end_at = :end_at, most = :most, next_at = :next_at, problem = null,
  version = version + 1, changed_at = :at
where id = :id and tenant = :tenant and version = :version
returning id
