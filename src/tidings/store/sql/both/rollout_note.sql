-- Write down a switch before it is made; nothing where nothing changes.
insert into rollouts (channel, at, mode, share, mode_before, share_before, reason)
select q.name, coalesce(cast(:now as bigint), tidings_now()), cast(:mode as text), cast(:share as integer), q.mode, q.share,
  cast(:reason as text)
from queues q where q.name = :name and (q.mode <> cast(:mode as text) or q.share <> cast(:share as integer))
returning id
