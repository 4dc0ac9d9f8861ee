-- How many tasks of an order key stand before this one, as far as a person would count, and which has the turn.
select count(*) as ahead, min(first_due) as since
from (select first_due from tasks where queue = :queue and ordering_key = :ordering_key and state = 'pending'
      and (first_due < (select x.first_due from tasks x where x.id = :id)
           or (first_due = (select x.first_due from tasks x where x.id = :id) and id < :id))
      order by first_due, id limit 1000) a
