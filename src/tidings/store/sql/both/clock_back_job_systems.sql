-- Rate limits and waits of the systems of migrations.
update job_systems set
  next_at = case when next_at > :at
    then next_at - :back else next_at end,
  blocked_until = case when blocked_until > :at
    then blocked_until - :back else blocked_until end
where next_at > :at or blocked_until > :at
