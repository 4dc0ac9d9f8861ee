-- Leases on what a migration reads, and when it is read next.
update job_types set
  reader_until = case when reader_until > :at
    then reader_until - :back else reader_until end,
  due_at = case when due_at > :at
    then due_at - :back else due_at end
where reader_until > :at or due_at > :at
