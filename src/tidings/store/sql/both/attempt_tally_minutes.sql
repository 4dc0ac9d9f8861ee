-- What came of attempts since an instant, minute by minute; those of one queue are left out.
select at, outcome, cast(sum(n) as bigint) as n
from attempt_tallies where at >= :since and queue <> :without group by at, outcome order by at, outcome
