-- What became of the rows of a run, a page at a time.
select r.source, r.key, t.id as task, t.state, t.attempts, t.queue, t.ordering_key
from import_rows r left join messages m on m.id = r.message left join tasks t on t.id = m.task
where r.import = :run and r.key > :after order by r.key limit :limit
