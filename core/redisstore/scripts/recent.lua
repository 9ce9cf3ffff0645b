-- recent: the counters of a slot.
-- needs: layout alone
-- KEYS[1] agenda
-- ARGV[1] number of the slot; '' for that of now
-- ARGV[2] ms of a slot
-- ARGV[3] 'h' for a long slot, or ''
-- returns {now, for each counter: name, number}

local slot = ARGV[1]
if slot == '' then slot = string.format('%.0f', math.floor(now / tonumber(ARGV[2]))) end
local all = redis.call('HGETALL', base .. 'recent:' .. ARGV[3] .. slot)
table.insert(all, 1, now)
return all
