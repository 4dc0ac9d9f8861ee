-- What the other sender says it sent; what it said before comes back no more. Own file: JSON as rows.
insert into shadows (channel, side, recipient, digest, at, ref)
select :channel, 'theirs', g.value ->> 'recipient', g.value ->> 'digest', g.value ->> 'at', g.value ->> 'ref'
from json_each(:rows) g where true
on conflict do nothing
returning id
