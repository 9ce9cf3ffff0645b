-- next: when some agents are due next, without taking anything.
-- needs: look asked
-- KEYS[1] agenda
-- KEYS[2] leases
-- KEYS[3] parked
-- ARGV[1] number of kinds
-- ARGV[2..] 1 for each kind with a handler: kind
-- ARGV[..] 1 for each agent: agent
-- returns {now, next due of these agents or '', next end of a lease or '', {when each agent is due or ''}}

local nkinds = tonumber(ARGV[1])
local kinds, agents = {}, {}
for i = 2, 1 + nkinds do kinds[i - 1] = ARGV[i] end
for i = 2 + nkinds, #ARGV do agents[i - 1 - nkinds] = ARGV[i] end
local first, dues = due_of(agents, kinds)
return { now, first or '', redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or '', dues }
