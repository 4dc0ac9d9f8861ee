-- What came of attempts since an instant, by queue and outcome.
select queue, what, sum(n) as n, sum(ms) as ms from tallies where at >= :since group by queue, what order by queue, what
