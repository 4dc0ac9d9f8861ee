-- A new lot: tasks that are counted together. Whatever needs its number is written next, in the same transaction.
insert into task_groups (kind) values (:kind)
