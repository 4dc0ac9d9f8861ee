-- How far a source was read, and who reads it.
select name, kind, known_at, cursor, token, holder, began_at, until, due_at, read_at, failures, problem,
  coalesce(cast(:now as bigint), tidings_now()) as now
from sources where name = :source
