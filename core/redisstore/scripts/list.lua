-- list: the ids of one agent's tasks, and the counts of one of its groups.
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] claims
-- KEYS[4] leases
-- KEYS[5] finished
-- KEYS[6] parked
-- ARGV[1] agent
-- ARGV[2] retention of finished records, ms
-- ARGV[3] group key or ''
-- returns {now, {live, completed, failed, cancelled} of the group, ids and their places in turn}; places as in read,
--          but c, f and x for finished ones
local agent, oldest = ARGV[1], now - tonumber(ARGV[2])
local reply = { now, { 0, 0, 0, 0 } }
local live = {}
local function add(id, place)
  live[id] = true
  reply[#reply + 1] = id
  reply[#reply + 1] = place
end

if ARGV[3] ~= '' then
  local counts = redis.call('HMGET', base .. 'group:' .. ARGV[3], 'live', 'completed', 'failed', 'cancelled', 'over')
  if not counts[5] or tonumber(counts[5]) > now then
    for i = 1, 4 do reply[2][i] = tonumber(counts[i] or 0) end
  end
end

local value = redis.call('HGET', KEYS[2], agent)
if value and byte(value) == 83 then
  local id = parse(sub(value, 2))
  add(id, (where(agent, id, sub(value, 2), true)))
elseif value then
  for level = 1, 3 do
    for _, member in ipairs(redis.call('ZRANGE', base .. 'queue:' .. level .. ':' .. agent, 0, -1)) do
      add(sub(member, 8), 'w')
    end
  end
  for _, fence in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    local found = redis.call('HMGET', KEYS[3], fence, fence .. 'r')
    local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
    if not whole or not found[1] then refs = {} end -- not what we wrote: a claim takes it away
    for i = 1, #refs / 3 do
      if refs[3 * i - 2] == agent and byte(found[1], i) == RUNNING then add(refs[3 * i - 1], 'r') end
    end
  end
  -- The rest is parked: under a kind, under a hold of its own, of the agent, or of a kind or key.
  local left = tonumber(sub(value, 3)) - (#reply - 2) / 2
  local function parked(name)
    local cursor = '0'
    while left > 0 do
      local page = redis.call('ZSCAN', base .. 'parked:' .. name, cursor, 'MATCH', agent .. ':*', 'COUNT', 1000)
      cursor = page[1]
      for i = 1, #page[2], 2 do
        add(string.match(page[2][i], '^[^:]*:(.*)$'), 'p')
        left = left - 1
      end
      if cursor == '0' then return end
    end
  end
  for _, kind in ipairs(left > 0 and redis.call('HKEYS', KEYS[6]) or {}) do
    if kind ~= '@' then parked(kind) end
  end
  parked('@a:' .. agent)
  parked('@t')
  for _, names in ipairs(left > 0 and { redis.call('HKEYS', base .. 'holds'), redis.call('ZRANGE', base .. 'open', 0, -1) } or {}) do
    for _, scope in ipairs(names) do
      if byte(scope) == 107 or byte(scope) == 115 then parked(bay(scope)) end
    end
  end
end

local kept = redis.call('HGET', KEYS[5], agent)
local records = {}
if kept == '*' then
  records = redis.call('HGETALL', base .. 'history:' .. agent)
elseif kept then
  records[1], records[2] = outline(kept)
end
for i = 1, #records, 2 do
  if not live[records[i]] and ended_at(records[i + 1]) > oldest then add(records[i], sub(records[i + 1], 1, 1)) end
end
return reply
