-- What was switched on one channel, newest first.
select at, mode, share, mode_before, share_before, reason from rollouts
where channel = :channel order by id desc limit :limit
