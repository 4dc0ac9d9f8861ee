-- One page further; only from where its reader stood.
update job_types set cursor = :cursor, expected = coalesce(expected, cast(:expected as bigint)),
  extracted = extracted + :n, seen_again = seen_again + :again, is_read = cast(:is_last as boolean), attempts = 0, due_at = 0,
  problem = null, note = coalesce(cast(:note as text), note), reader_until = coalesce(cast(:now as bigint),
    tidings_now()) + :lease
where job = :job and type = :type and reader = :reader and not is_read and coalesce(cursor,
  '') = coalesce(cast(:seen as text), '')
  and exists (select 1 from jobs j where j.n = :job and j.round = :round and j.state in ('planning', 'running'))
returning type
