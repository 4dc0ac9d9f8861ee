-- When a broadcast is looked at again; its own time stays.
update broadcasts set
  look_at = case when look_at > :at
    then look_at - :back else look_at end
where look_at > :at
