-- Sum up the counts of a lot. Own file: on SQLite there is one row each already.
with gone as (
  delete from lot_counts where lot = :lot returning what, n
)
insert into lot_counts (lot, what, n) select cast(:lot as bigint), what, sum(n) from gone group by what having sum(n) <> 0
