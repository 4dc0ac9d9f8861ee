-- The admins are told. No row back: somebody else did it.
update notices set sent_at = :at, problem = :problem where id = :id and sent_at is null returning id
