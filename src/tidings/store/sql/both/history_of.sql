-- All that happened to one task, in order, with the names of those who did it.
select h.task, h.at, h.origin, h.state, h.attempt, h.node, n.name as node_name, h.category, h.detail
from history h left join nodes n on n.id = h.node
where h.task = :task order by h.at, h.state = 'processing' desc
