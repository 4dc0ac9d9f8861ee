-- When a broadcast is looked at again; its own time stays.
update broadcasts set
  check_at = case when check_at > :at
    then check_at - :back else check_at end
where check_at > :at
