-- tally: add what a process has counted of its runs to the slots of now.
-- needs: layout alone
-- KEYS[1] agenda
-- ARGV[1] process
-- ARGV[2] number of its tally
-- ARGV[3] ms of a slot
-- ARGV[4] ms for which a slot is kept
-- ARGV[5] ms of a long slot
-- ARGV[6] ms for which a long slot is kept
-- ARGV[7] most counters of a slot
-- ARGV[8..] 2 for each counter: name, how much is added, or what it is if the name begins with w or u
-- returns {now}

local process, seq, most = ARGV[1], ARGV[2], tonumber(ARGV[7])

local function slot(prefix, each)
  return base .. 'recent:' .. prefix .. string.format('%.0f', math.floor(now / tonumber(each)))
end

-- It puts the counters into a slot.
local function put(key, keep)
  local room = most - redis.call('HLEN', key)
  for i = 8, #ARGV, 2 do
    local name = ARGV[i]
    local known = redis.call('HEXISTS', key, name) == 1
    if known or room > 0 then
      local first = string.sub(name, 1, 1)
      redis.call((first == 'w' or first == 'u') and 'HSET' or 'HINCRBY', key, name, ARGV[i + 1])
      if not known then room = room - 1 end
    end
  end
  redis.call('PEXPIRE', key, keep)
end

local key = slot('', ARGV[3])
local last = redis.call('HGET', key, '@' .. process)
if last and tonumber(last) >= tonumber(seq) then return { now } end -- its answer was lost
redis.call('HSET', key, '@' .. process, seq)
put(key, ARGV[4])
put(slot('h', ARGV[5]), ARGV[6])
return { now }
