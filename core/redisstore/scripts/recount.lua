-- recount: what an audit counts over a whole round of pages, to compare the counters with.
-- A round is exact only while nothing changes: `counters`, which every change of what is counted changes, must be as they were
-- when it began, every task and agent must have been seen once, and nothing else may be wrong. Else it ends without a comparison.
-- needs: grouped

local shadow = base .. 'recount:'
local found = {}
local IN_GROUP = 'G' -- in front of a group in what was counted
local TOTAL = ':' -- in front of what is counted of all tasks

-- state_of changes whenever one of the counts may have.
local function state_of()
  return redis.sha1hex(table.concat(redis.call('HGETALL', base .. 'counters'), '|'))
end

-- readable says whether what a round reads is ours: the rest of an audit goes on without counting if it is not.
local function readable()
  for _, name in ipairs({ 'counters', 'kinds', 'groups', 'pulse' }) do
    local n = redis.pcall('HLEN', base .. name)
    if type(n) == 'table' then return false end
  end
  return true
end

-- recounting says whether the round goes on; a first page begins it.
local function recounting(round, begins)
  if #round < 2 or not readable() then return false end
  redis.call('ZREM', base .. 'leases', '') -- the first write must be one that is allowed when memory is full
  if begins then redis.call('HSET', shadow .. round, ':state', state_of()) end
  if redis.call('HGET', shadow .. round, ':state') ~= state_of() then
    redis.call('DEL', shadow .. round)
    return false
  end
  redis.call('PEXPIRE', shadow .. round, 600000)
  return true
end

local function tick_off(field) found[field] = (found[field] or 0) + 1 end

-- tally counts a live task.
local function tally(agent, id, live, place_)
  local _, kind = parse(live)
  tick_off(COUNT_LIVE .. kind)
  tick_off(':live')
  if place_ == IS_RUNNING then
    tick_off(COUNT_RUNNING .. kind)
    tick_off(':running')
  end
  if dozing(redis.call('HGET', base .. 'pulse', agent .. ':' .. id)) then tick_off(COUNT_RESTING .. kind) end
  local group = group_of(agent, id, live, '?')
  if group ~= '' then tick_off(IN_GROUP .. group) end
end

local function tallied(round)
  for field, n in pairs(found) do redis.call('HINCRBY', shadow .. round, field, n) end
end

-- whole says whether every task and agent was seen once: a scan may return some twice.
local function whole(round)
  local function all(field, key)
    return tonumber(redis.call('HGET', shadow .. round, field) or 0) == redis.call('HLEN', base .. key)
  end
  return all(':tasks', 'tasks') and all(':agents', 'agents')
end

-- regroup sets how many live tasks a group has.
local function regroup(group, n, retention)
  local key = base .. 'group:' .. group
  redis.call('HSET', key, 'live', n)
  if n > 0 then
    redis.call('HSET', base .. 'groups', GROUP_LIVE .. group, 1)
    redis.call('HDEL', key, 'over')
    redis.call('PERSIST', key)
  else
    redis.call('HDEL', base .. 'groups', GROUP_LIVE .. group)
    redis.call('HSET', key, 'over', now + retention)
    redis.call('PEXPIRE', key, retention)
  end
end

-- Each of these compares a page with what was counted: the counters of kinds, the groups that have live tasks or had, and
-- what was counted itself, as it may have no counter. They tell each counter that is wrong, with its agent if it is a group's,
-- and mend it if they are to. They return the next cursor.
local function compare(round, field, key, name, told, repair)
  local n = tonumber(redis.call('HGET', shadow .. round, field) or 0)
  if tonumber(redis.call('HGET', key, name) or 0) == n then return end
  told('')
  if repair then redis.call('HSET', key, name, n) end
end

local function compare_group(round, group, retention, told, repair)
  local n = tonumber(redis.call('HGET', shadow .. round, IN_GROUP .. group) or 0)
  if tonumber(redis.call('HGET', base .. 'group:' .. group, 'live') or 0) == n then return end
  told(string.match(group, '^[^:]*'))
  if repair then regroup(group, n, retention) end
end

local comparing = {}
function comparing.k(round, cursor, n, _, told, repair)
  local page = redis.call('HSCAN', base .. 'kinds', cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    if string.find(field, '^[lrz]') then compare(round, field, base .. 'kinds', field, told, repair) end
  end
  return page[1] == '0' and 'm0' or 'k' .. page[1]
end

function comparing.m(round, cursor, n, retention, told, repair)
  local page = redis.call('HSCAN', base .. 'groups', cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local field, value = page[2][i], page[2][i + 1]
    if byte(field) == byte(GROUP_LIVE) then
      compare_group(round, sub(field, 2), retention, told, repair)
    elseif repair then
      local agent, id = string.match(field, '^([^:]*):(.*)$')
      local live = agent and find(agent, redis.call('HGET', base .. 'agents', agent), id)
      if not live or sub(live, 1, 7) ~= sub(value, 1, 7) then redis.call('HDEL', base .. 'groups', field) end
    end
  end
  return page[1] == '0' and 's0' or 'm' .. page[1]
end

function comparing.s(round, cursor, n, retention, told, repair)
  local page = redis.call('HSCAN', shadow .. round, cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    if byte(field) == byte(IN_GROUP) then
      compare_group(round, sub(field, 2), retention, told, repair)
    elseif byte(field) ~= byte(TOTAL) then
      compare(round, field, base .. 'kinds', field, told, repair)
    end
  end
  if page[1] ~= '0' then return 's' .. page[1] end
  for _, name in ipairs({ 'live', 'running' }) do
    compare(round, ':' .. name, base .. 'counters', name, told, repair)
  end
  redis.call('DEL', shadow .. round)
  return ''
end
