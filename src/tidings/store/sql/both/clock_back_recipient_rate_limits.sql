-- The reserved rate-limit slots of recipients.
update recipient_rate_limits set
  next_at = case when next_at > :at
    then next_at - :back else next_at end
where next_at > :at
