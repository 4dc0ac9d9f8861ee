-- Migration jobs that wait.
update jobs set
  blocked_until = case when blocked_until > :at
    then blocked_until - :back else blocked_until end,
  check_at = case when check_at > :at
    then check_at - :back else check_at end
where blocked_until > :at or check_at > :at
