-- Sum up the counts of a group. Own file: SQLite has one row each already.
with gone as (
  delete from task_group_counts where group_id = :group_id returning outcome, n
)
insert into task_group_counts (group_id, outcome, n) select cast(:group_id as bigint), outcome, sum(n) from gone group by outcome having sum(n) <> 0
