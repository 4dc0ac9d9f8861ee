-- It was over before it was raised.
delete from alerts where id = :id and state = 'pending'
