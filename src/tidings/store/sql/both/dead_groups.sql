-- Dead letters counted by cause, among the newest ones; each cause with its newest task as an example.
select t.queue, t.category, t.unknown, count(*) as n, min(t.changed_at) as since, max(t.changed_at) as latest, max(t.id) as task
from (select id from tasks where state = 'failed' and state >= 'expired' and state <= 'failed'
      order by id desc limit :window) w join tasks t on t.id = w.id
where t.tenant = :tenant and t.kind = :kind
group by t.queue, t.category, t.unknown
order by count(*) desc, t.queue, t.category, t.unknown limit :limit
