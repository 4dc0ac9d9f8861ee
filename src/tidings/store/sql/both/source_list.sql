-- Every source that any process has made known, by name.
select name, kind, known_at, cursor, holder, began_at, until, due_at, read_at, failures, problem,
  coalesce(cast(:now as bigint), tidings_now()) as now
from sources order by name limit :limit
