-- It is still so.
update alerts set last_at = :at, value = :value, problem = :problem where id = :id and resolved_at is null
