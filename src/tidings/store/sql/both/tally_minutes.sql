-- What came of attempts since an instant, minute by minute; those of one queue are left out.
select at, what, cast(sum(n) as bigint) as n
from tallies where at >= :since and queue <> :without group by at, what order by at, what
