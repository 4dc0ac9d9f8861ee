-- Which of these recipients the lot has already. Own file: JSON is taken apart differently.
select m.recipient from json_each(:recipients) j cross join messages m on m.group_id = :group_id and m.recipient = j.value
