-- How many messages of a drill wait or are at work.
select count(*) as n from tasks where state in ('pending', 'processing')
