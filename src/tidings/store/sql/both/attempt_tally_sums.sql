-- What came of attempts since an instant, by queue and outcome.
select queue, outcome, cast(sum(n) as bigint) as n, cast(sum(ms) as bigint) as ms
from attempt_tallies where at >= :since group by queue, outcome order by queue, outcome
