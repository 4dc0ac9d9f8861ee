-- Make room for a node that starts late: the slot that ends at :until grows by :more if it is the last one;
-- otherwise a new one of that size is reserved. Gives the slot's beginning.
update rate_limits set next_at = :more + case
  when next_at = :until then next_at
  when next_at > coalesce(cast(:now as bigint), tidings_now()) then next_at + :step
  else coalesce(cast(:now as bigint), tidings_now()) + :step end
where queue = :queue
returning next_at - :step - :more as at
