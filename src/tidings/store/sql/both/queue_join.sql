-- Make a queue known and its traits current; its pauses, parking and breaker stay as they are.
insert into queues (name, on_unknown, deadline, stop_on_failure)
values (:name, :on_unknown, :deadline, :stop_on_failure)
on conflict (name) do update set on_unknown = excluded.on_unknown, deadline = excluded.deadline,
  stop_on_failure = excluded.stop_on_failure
