-- Under which keys secrets are stored: the version and the key id that a value starts with.
select distinct substr(value, 1, 15) as used
from (select value from secrets
  union all select secret from subscriptions
  union all select old_secret from subscriptions where old_secret is not null) as stored
