-- Sum up the counts of past minutes; tally_drop then forgets what was summed, in the same transaction.
insert into tallies (at, queue, what, n, ms, packed)
select at, queue, what, sum(n), sum(ms), true from tallies where not packed and at < :before
group by at, queue, what
