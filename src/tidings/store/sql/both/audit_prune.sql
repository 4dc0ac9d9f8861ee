-- Forget a page of lines from long ago, which the chain no longer begins before.
delete from audit where n in (
  select n from audit
  where n < coalesce((select n from audit where at + 0 >= :before order by n limit 1), 9223372036854775807)
    and n <= coalesce((select base_n from audit_chain), 9223372036854775807)
  order by n limit :limit)
returning n
