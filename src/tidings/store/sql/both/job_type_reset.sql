-- A new round: the source is read from its beginning.
update job_types set cursor = null, expected = null, extracted = 0, seen_again = 0, is_read = false, reader = null,
  reader_until = 0, due_at = 0, attempts = 0, problem = null, note = null, cut = 0, passed = -1, linked = false, counts = null
where job = :job
