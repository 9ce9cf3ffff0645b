-- book: book an alarm with a clock outside, unless one is booked that is to come and no later, or forget one.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] alarms
-- ARGV[1] when, ms; 0 to ask
-- ARGV[2] tag; of one that is to be forgotten, if ARGV[1] is ''
-- ARGV[3] most alarms that are remembered
-- returns {now, tag and time of the next one that is booked then; nothing for none}

if ARGV[1] == '' then
  redis.call('ZREM', KEYS[2], ARGV[2])
  return { now }
end
redis.call('ZREM', KEYS[2], '') -- the first write must be one that is allowed when memory is full
local at = tonumber(ARGV[1])
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
if #over > 0 then redis.call('ZREM', KEYS[2], unpack(over)) end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if at > now and (not first[2] or at < tonumber(first[2])) then
  redis.call('ZADD', KEYS[2], ARGV[1], ARGV[2])
  local beyond = redis.call('ZRANGE', KEYS[2], ARGV[3], -1)
  if #beyond > 0 then redis.call('ZREM', KEYS[2], unpack(beyond)) end
  first = { ARGV[2], ARGV[1] }
end
return { now, unpack(first) }
