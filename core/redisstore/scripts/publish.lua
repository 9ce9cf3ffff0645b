-- publish: keep events for those who listen, if somebody does.
-- needs: answers
-- KEYS[1] agenda
-- KEYS[2] events
-- KEYS[3] watched
-- ARGV[1] how many were lost in front of these
-- ARGV[2..] 1 for each event: what it says
-- returns {now, 1, or 0 when nobody listens}

local MOST_EVENTS = '10000' -- events, about: feed.Kept
local LASTS = '3600000' -- ms: feed.KeptFor
local epoch = redis.call('GET', KEYS[3])
if not epoch then return { now, 0 } end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local of, n = string.match(last and last[1] or '', '^(%d+)-(%d+)$')
n = of == epoch and tonumber(n) or 0

-- keep adds an entry that is k behind the last one: who reads sees by the numbers what is missing.
local function keep(k, event)
  n = n + k
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', MOST_EVENTS, epoch .. string.format('-%.0f', n), 'e', event)
end

local lost = tonumber(ARGV[1])
if lost > 0 then keep(lost, '') end
for i = 2, #ARGV do keep(1, ARGV[i]) end
redis.call('PEXPIRE', KEYS[2], LASTS)
return kept_answer({ now, 1 })
