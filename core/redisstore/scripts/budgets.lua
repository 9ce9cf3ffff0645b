-- budgets: what budgets are in force, and what some of their buckets have used.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] limits
-- KEYS[3] lines
-- KEYS[4] spent
-- KEYS[5] periods
-- ARGV[1] how many buckets to look at
-- returns {now, {limit, what it allows, and so on}, {bucket, how many wait, and so on}, {bucket, what it has used in the period that is
--          now, and so on}}

local used = redis.call('HSCAN', KEYS[4], '0', 'COUNT', ARGV[1])[2]
local lines = redis.call('HSCAN', KEYS[3], '0', 'COUNT', ARGV[1])[2]
local names, reply = {}, {}
for i = 1, math.min(#used, 2 * ARGV[1]), 2 do names[#names + 1] = used[i] end
for i, ends in ipairs(#names > 0 and redis.call('ZMSCORE', KEYS[5], unpack(names)) or {}) do
  if ends and tonumber(ends) > now then
    reply[#reply + 1] = names[i]
    reply[#reply + 1] = used[2 * i]
  end
end
return { now, redis.call('HGETALL', KEYS[2]), lines, reply }
