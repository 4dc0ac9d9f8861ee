-- How many messages of a drill wait or are at work; asked many times a second, so each part by the index that has it.
select (select count(*) from tasks where state = 'pending' and head)
  + (select count(*) from tasks where state = 'pending' and ordering_key is not null and not head)
  + (select count(*) from tasks where state = 'processing') as n
