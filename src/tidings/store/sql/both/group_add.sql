-- A new task group; rows that need its number follow in the same transaction.
insert into task_groups (kind) values (:kind)
