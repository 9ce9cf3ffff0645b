-- stamp: note that the definitions are stored which a stamp names.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] leases
-- KEYS[3] counters
-- KEYS[4] limits
-- ARGV[1] stamp
-- ARGV[2] most stamps that are known: the oldest go
-- ARGV[3..] 1 for each limit and budget among the definitions: kind|key|each, as in limit
-- returns {now, 1 or 0 if one of them is not set}

for i = 3, #ARGV do
  -- guard: stamp-of-what-is-set
  if redis.call('HEXISTS', KEYS[4], ARGV[i]) == 0 then return { now, 0 } end
end
redis.call('ZREM', KEYS[2], '') -- the first write must be one that is allowed when memory is full
local known, n = { ARGV[1] }, 1
for stamp in string.gmatch(string.reverse(redis.call('HGET', KEYS[3], 'stamps') or ''), '%w+') do
  stamp = string.reverse(stamp)
  if stamp ~= ARGV[1] and n < tonumber(ARGV[2]) then
    n = n + 1
    table.insert(known, 1, stamp)
  end
end
redis.call('HSET', KEYS[3], 'stamps', table.concat(known, ' '))
return { now, 1 }
