-- The next state of a case. No row back: it is in another state than it was read in.
update cases set state = :state, claimed_by = :claimed_by, deadline_at = :deadline_at, changed_at = :at,
  closed_at = case when :state = 'closed' then cast(:at as bigint) else null end
where id = :id and state = :expected returning id
