-- A call that brought no answer.
update model_calls set state = 'failed', error = :error, ms = :ms where id = :id and state = 'asked'
