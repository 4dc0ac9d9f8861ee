-- How much of a channel's traffic goes out from now on.
update queues set mode = cast(:mode as text), share = cast(:share as integer) where name = :name
