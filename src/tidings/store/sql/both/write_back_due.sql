-- Sources with rows to look at.
select w.source, w.failures from write_backs w
where w.next_at <= coalesce(cast(:now as bigint), tidings_now()) and exists (select 1 from import_rows r
  where r.source = w.source and r.check_at <= coalesce(cast(:now as bigint), tidings_now()))
order by w.source limit :limit
