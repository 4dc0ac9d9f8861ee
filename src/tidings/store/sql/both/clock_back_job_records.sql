-- Records of migrations between two attempts.
update job_records set
  due_at = case when due_at > :at
    then due_at - :back else due_at end,
  claimed_at = case when claimed_at > :at
    then claimed_at - :back else claimed_at end
where due_at > :at or claimed_at > :at
