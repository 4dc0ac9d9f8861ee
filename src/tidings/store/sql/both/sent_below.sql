-- Where a walk down the tasks goes on: the newest one below a place.
select max(id) as newest from tasks where id < :before
