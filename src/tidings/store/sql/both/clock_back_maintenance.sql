-- What one process does for all.
update maintenance set
  due_at = case when due_at > :at
    then due_at - :back else due_at end
where due_at > :at
