-- Open again what was written without a link.
update job_records set state = 'ready', batch = :batch, due_at = 0, links = false,
  changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select seq from job_records where job = :job and type = :type and links
  and state = 'written' order by seq limit :limit)
returning seq
