-- What was due at once, and waits between attempts, keep their distance from now. What has a time of its own keeps that:
-- a message for a later time, one that a person has rescheduled, one that waits for its expiry.
update tasks set
  due_at = case when due_at <= changed_at and due_at - :back > :at
    then :at else due_at - :back end,
  first_due = first_due - :back
where state in ('pending', 'processing') and changed_at > :at and due_at > :at
  and (due_at <= changed_at or (attempts > 0 and due_at <> coalesce(expires_at, 0)))
  and not exists (select 1 from messages m where m.task = tasks.id and m.scheduled_at <> m.accepted_at
    and m.scheduled_at > :at)
  and not exists (select 1 from history h where h.task = tasks.id and h.origin = 'pending' and h.state = 'pending')
returning id
