-- Leases on sources, and when they are read next.
update sources set
  until = case when until > :at
    then until - :back else until end,
  due_at = case when due_at > :at
    then due_at - :back else due_at end
where until > :at or due_at > :at
