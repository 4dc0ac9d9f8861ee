-- What the other sender says it sent; what it said before comes back no more. Own file: JSON as rows.
insert into shadows (channel, side, recipient, digest, at, ref)
select :channel, 'theirs', g.recipient, g.digest, g.at, g.ref
from json_to_recordset(:rows::json) g(recipient text, digest text, at bigint, ref text)
on conflict do nothing
returning id
