-- What came of attempts since an instant, by queue and outcome.
select queue, what, cast(sum(n) as bigint) as n, cast(sum(ms) as bigint) as ms
from tallies where at >= :since group by queue, what order by queue, what
