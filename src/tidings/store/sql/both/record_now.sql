-- One line of a task's history, now.
insert into history (task, origin, state, attempt, node, category, detail, at)
values (:task, :origin, :state, :attempt, :node, :category, :detail, coalesce(cast(:now as bigint), tidings_now()))
