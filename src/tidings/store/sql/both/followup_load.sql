-- The plan that there is news of.
select plan from followups where task = :task
