-- Later commands on the same half hours of the same squad that are known to be done.
select first_slot, last_slot from effects
where calendar = :calendar and day = :day and task > :task and squad = :squad and state = 'confirmed'
  and first_slot < :last and last_slot > :first
