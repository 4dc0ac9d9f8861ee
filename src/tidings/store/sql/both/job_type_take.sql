-- Begin to read a type, if nobody else does; a reader that has died loses it with time.
update job_types set reader = :reader, reader_until = coalesce(cast(:now as bigint), tidings_now()) + :lease
where job = :job and type = :type and not is_read
  and (reader = :reader or reader_until <= coalesce(cast(:now as bigint), tidings_now()))
returning cursor, expected, extracted, seen_again, attempts
