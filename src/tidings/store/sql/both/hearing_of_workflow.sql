-- The newest message that a workflow heard.
select n, message, speaker, text from hearings
where tenant = :tenant and conversation = :conversation and workflow = :workflow order by n desc limit 1
