-- Which of these recipients the lot has already. Own file: JSON is taken apart differently.
select m.recipient from (select value from json_array_elements_text(cast(:recipients as json)) j(value)) j
join messages m on m.lot = :lot and m.recipient = j.value
