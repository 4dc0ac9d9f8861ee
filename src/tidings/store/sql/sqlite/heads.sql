-- The earliest task of the next priority after :after on a queue. Own file: a loose index scan, step by step.
select priority, due_at from tasks indexed by tasks_due
where queue = :queue and state = 'pending' and head and priority > :after
order by priority, due_at limit 1
