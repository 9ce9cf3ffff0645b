-- sweep: drop finished records that are too old, of a bounded number of agents and a bounded number of them at a time.
-- KEYS[1] agenda
-- KEYS[2] finished
-- KEYS[3] stale
-- ARGV[1] cursor of the sweep
-- ARGV[2] retention of finished records, ms
-- ARGV[3] most finished records of an agent
-- returns {the next cursor}
local oldest, most = now - tonumber(ARGV[2]), tonumber(ARGV[3])
local BUDGET, PAGE = 1000, 200 -- entries of indexes that one sweep takes; records of one history that it looks at

redis.call('ZREM', base .. 'leases', '') -- the first write must be one that is allowed when memory is full

-- length is how many entries a list of ends has. LLEN is not among the commands that users of older versions allow duly.
local function length(key)
  if redis.call('EXISTS', key) == 0 then return 0 end
  local n = redis.call('LPUSH', key, '') - 1
  redis.call('LTRIM', key, 1, -1)
  return n
end

-- scan drops what is too old of a page of a history that is not in its index.
local function scan(agent, key)
  local from = redis.call('HGET', KEYS[3], 'scan:' .. agent) or '0'
  local found, old = redis.call('HSCAN', key, from, 'COUNT', PAGE), {}
  for i = 1, #found[2], 2 do
    if ended_at(found[2][i + 1]) <= oldest then old[#old + 1] = found[2][i] end
  end
  for i = 1, #old, 1000 do redis.call('HDEL', key, unpack(old, i, math.min(i + 999, #old))) end
  if found[1] ~= '0' then
    redis.call('HSET', KEYS[3], 'scan:' .. agent, found[1])
  elseif from ~= '0' then
    redis.call('HDEL', KEYS[3], 'scan:' .. agent)
  end
end

local function tidy(agent)
  local key = base .. 'history:' .. agent
  local n = redis.call('HLEN', key)
  if n > unlisted(most) then
    local in_index = 0
    for _, class in ipairs({ 'ends:', 'dead:' }) do
      local all = length(base .. class .. agent)
      in_index = in_index + all - tonumber(redis.call('HGET', KEYS[3], class .. agent) or 0)
      local _, taken = cut(agent, class, all, most, now - oldest, BUDGET)
      BUDGET = BUDGET - taken
    end
    if n > in_index then scan(agent, key) end
  else
    scan(agent, key)
  end
  n = redis.call('HLEN', key)
  if n <= unlisted(most) then unlist(agent) end
  if n == 0 then redis.call('HDEL', KEYS[2], agent) end
end

local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', 100)
for i = 1, #page[2], 2 do
  local agent, value = page[2][i], page[2][i + 1]
  if value == '*' then
    tidy(agent)
  else
    local _, record = outline(value)
    if ended_at(record) <= oldest then redis.call('HDEL', KEYS[2], agent) end
  end
end
dropped(now - oldest, 1000)
return { page[1] }
