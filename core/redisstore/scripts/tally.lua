-- tally: add what a process has counted of its runs to the slot of now.
-- needs: layout alone
-- KEYS[1] agenda
-- ARGV[1] process
-- ARGV[2] number of its tally
-- ARGV[3] ms of a slot
-- ARGV[4] ms for which a slot is kept
-- ARGV[5] most counters of a slot
-- ARGV[6..] 2 for each counter: name, how much is added
-- returns {now}

local process, seq, most = ARGV[1], ARGV[2], tonumber(ARGV[5])
local key = base .. 'recent:' .. string.format('%.0f', math.floor(now / tonumber(ARGV[3])))
local last = redis.call('HGET', key, '@' .. process)
if last and tonumber(last) >= tonumber(seq) then return { now } end -- its answer was lost
redis.call('HSET', key, '@' .. process, seq)
local room = most - redis.call('HLEN', key)
for i = 6, #ARGV, 2 do
  local known = redis.call('HEXISTS', key, ARGV[i]) == 1
  if known or room > 0 then
    redis.call('HINCRBY', key, ARGV[i], ARGV[i + 1])
    if not known then room = room - 1 end
  end
end
redis.call('PEXPIRE', key, ARGV[4])
return { now }
