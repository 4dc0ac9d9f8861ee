-- Which of these are here already. Own file: a list goes in as JSON, which each database reads in its own way.
select i.platform_id from json_array_elements_text(cast(:ids as json)) g
  cross join lateral (select platform_id from inbox where source = :source and platform_id = g.value offset 0) i
