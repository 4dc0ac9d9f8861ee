-- The breakers of single receivers.
update destinations set
  opened_at = case when opened_at > :at
    then opened_at - :back else opened_at end,
  until_at = case when until_at > :at
    then until_at - :back else until_at end
where opened_at > :at or until_at > :at
