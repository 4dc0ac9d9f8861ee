-- Which of these are here already. Own file: a list goes in as JSON, which each database reads in its own way.
-- A range in an order, because a plan that was made while there was little might take the other index of a source.
select i.platform_id from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select platform_id from inbox
    where source = :source and platform_id >= g.value and platform_id <= g.value order by platform_id limit 1) i
