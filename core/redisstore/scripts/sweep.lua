-- sweep: drop finished records that are too old, of a bounded number of agents and a bounded number of them at a time, and
--        answers that nobody waits for any more.
-- needs: signals finished lanes
-- KEYS[1] agenda
-- KEYS[2] finished
-- KEYS[3] stale
-- ARGV[1] cursors of the sweep, of records and of answers: n|n
-- ARGV[2] retention of finished records, ms
-- ARGV[3] most finished records of an agent, and KiB of large ones, with a | between them
-- returns {the next cursors, 1 if it had to stop as there is much to drop}

local oldest, most, heaviest = now - tonumber(ARGV[2]), limits_of(ARGV[3])
local budget = 1000 -- entries of indexes that one sweep takes
local PAGE = 200 -- records of a history that it looks at
local AGENTS = 80 -- agents that it looks at

redis.call('ZREM', base .. 'leases', '') -- the first write must be one that is allowed when memory is full

-- length is how many entries a list of ends has. LLEN is not among the commands that users of older versions allow duly.
local function length(key)
  if redis.call('EXISTS', key) == 0 then return 0 end
  local n = redis.call('LPUSH', key, '') - 1
  redis.call('LTRIM', key, 1, -1)
  return n
end

-- scan drops what is too old of a part of a history that is not in its index.
local function scan(agent, key)
  local from = redis.call('HGET', KEYS[3], 'scan:' .. agent) or '0'
  local cursor, n = from, 0
  repeat
    local found, old = redis.call('HSCAN', key, cursor, 'COUNT', 1), {}
    for i = 1, #found[2], 2 do
      local record = found[2][i + 1]
      n = n + 1
      spare = spare - #record
      if ended_at(record) <= oldest then
        old[#old + 1] = found[2][i]
        if byte(record) == byte(FAILED) then unfailed[#unfailed + 1] = agent .. ':' .. found[2][i] end
        weigh(class_of(record) .. agent, -weight(#record - 14))
      end
    end
    for i = 1, #old, 1000 do redis.call('HDEL', key, unpack(old, i, math.min(i + 999, #old))) end
    cursor = found[1]
  until cursor == '0' or n >= PAGE or spare <= 0
  budget = budget - math.floor(n / 4)
  if cursor ~= '0' then
    redis.call('HSET', KEYS[3], 'scan:' .. agent, cursor)
  elseif from ~= '0' then
    redis.call('HDEL', KEYS[3], 'scan:' .. agent)
  end
end

local function tidy(agent)
  local key = base .. 'history:' .. agent
  local n = redis.call('HLEN', key)
  if n > unlisted(most) or heavy(agent) then
    local in_index = 0
    for _, class in ipairs({ 'ends:', 'dead:' }) do
      local all = length(base .. class .. agent)
      in_index = in_index + all - tonumber(redis.call('HGET', KEYS[3], class .. agent) or 0)
      local _, taken = cut(agent, class, all, most, heaviest, now - oldest, budget)
      budget = budget - taken
    end
    if n > in_index then scan(agent, key) end
  else
    scan(agent, key)
  end
  n = redis.call('HLEN', key)
  if n <= unlisted(most) and not heavy(agent) then unlist(agent) end
  if n == 0 then
    redis.call('HDEL', KEYS[2], agent)
    redis.call('HDEL', base .. 'bytes', 'ends:' .. agent, 'dead:' .. agent)
  end
end

-- A page of agents is looked at from a place in it that is another one each time: what it has no time for is not always the same.
local cursor, answers_from = string.match(ARGV[1], '^(%d+)|(%d+)$')
cursor = cursor or '0'
local n, stopped = 0, false
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 1)
  local some = page[2]
  local first = #some > 0 and math.floor(now / 100) % (#some / 2) or 0
  for k = 0, #some / 2 - 1 do
    local i = 2 * ((first + k) % (#some / 2)) + 1
    local agent, value = some[i], some[i + 1]
    n = n + 1
    spare = spare - #value
    if budget <= 0 or spare <= 0 and value == HISTORY then
      stopped = true
    elseif value == HISTORY then
      tidy(agent)
    else
      local id, record = outline(value)
      if ended_at(record) <= oldest then
        redis.call('HDEL', KEYS[2], agent)
        if byte(record) == byte(FAILED) then unfailed[#unfailed + 1] = agent .. ':' .. id end
      end
    end
  end
  if not stopped then cursor = page[1] end
until cursor == '0' or stopped or n >= AGENTS or spare <= 0 or budget <= 0
dropped(now - oldest, 1000)
for i = 1, #unfailed, 1000 do redis.call('ZREM', base .. 'failed', unpack(unfailed, i, math.min(i + 999, #unfailed))) end

-- rule: tenants
local lanes = redis.call('EXISTS', base .. 'laned') == 1 and with_lanes() -- claims that take all that is due leave them
if lanes and lanes.reached() == 0 then lanes.clear() end

local ANSWERS_KEPT = 600000 -- ms; a call is repeated for a few seconds
local answers, over = redis.call('HSCAN', base .. 'answers', answers_from or '0', 'COUNT', 100), {}
for i = 1, #answers[2], 2 do
  local whole, answer = pcall(cmsgpack.unpack, sub(answers[2][i + 1], 9))
  local at = whole and type(answer) == 'table' and tonumber(answer[1]) or 0
  if at <= now - ANSWERS_KEPT then over[#over + 1] = answers[2][i] end
end
for i = 1, #over, 1000 do redis.call('HDEL', base .. 'answers', unpack(over, i, math.min(i + 999, #over))) end
return { cursor .. '|' .. answers[1], (stopped or spare <= 0 or budget <= 0) and 1 or 0 }
