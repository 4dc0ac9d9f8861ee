-- One line of a task's history.
insert into history (task, origin, state, try, node, category, detail, at)
values (:task, :origin, :state, :try, :node, :category, :detail, :at)
