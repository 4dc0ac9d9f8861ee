-- Sum up the counts of past minutes; tally_drop then forgets what was summed, in the same transaction.
insert into attempt_tallies (at, queue, outcome, n, ms, packed)
select at, queue, outcome, sum(n), sum(ms), true from attempt_tallies where not packed and at < :before
group by at, queue, outcome
