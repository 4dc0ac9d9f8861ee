-- A notice was sent. No row: another node sent it.
update notices set sent_at = :at, problem = :problem where id = :id and sent_at is null returning id
