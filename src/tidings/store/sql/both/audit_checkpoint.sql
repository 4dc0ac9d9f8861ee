-- Begin the chain behind a page of lines from long ago, so that they can be pruned and the rest is still verified.
-- Only the oldest lines in a row: one that is not old enough ends the page. (at + 0: the scan must go by n.)
with page as (
  select n, at, hash from audit
  where n < coalesce((select n from audit where at + 0 >= :before order by n limit 1), 9223372036854775807)
  order by n limit :limit
), last as (select n, at, hash from page order by n desc limit 1)
update audit_chain set base_n = last.n, base_hash = last.hash, base_at = last.at
from last where last.n > audit_chain.base_n
