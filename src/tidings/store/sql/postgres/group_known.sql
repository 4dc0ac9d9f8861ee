-- Which of these recipients the group already has. Own file: JSON functions differ.
-- `limit 1` keeps the planner from walking the whole lot for each of them.
select m.recipient from json_array_elements_text(cast(:recipients as json)) j(value) cross join lateral (
  select recipient from messages where group_id = :group_id and recipient = j.value limit 1) m
