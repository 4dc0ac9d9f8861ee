-- Nothing has changed, or started, later than now.
update tasks set changed_at = :at,
  started_at = case when started_at > :at then :at else started_at end
where state in ('pending', 'processing') and changed_at > :at
