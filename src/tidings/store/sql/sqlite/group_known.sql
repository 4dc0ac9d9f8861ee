-- Which of these recipients the group already has. Own file: JSON functions differ.
select m.recipient from json_each(:recipients) j cross join messages m on m.group_id = :group_id and m.recipient = j.value
