-- One line of a task's history.
insert into history (task, origin, state, attempt, node, category, detail, at)
values (:task, :origin, :state, :attempt, :node, :category, :detail, :at)
