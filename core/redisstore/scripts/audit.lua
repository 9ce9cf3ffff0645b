-- audit: look whether each live task of a page waits in the agenda, runs or is parked, and put back one that does not.
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] claims
-- KEYS[5] leases
-- KEYS[6] parked
-- ARGV[1] cursor: 'a' for a page of agents or 't' for one of tasks, and where it begins
-- ARGV[2] about how many
-- ARGV[3] 1 to repair what is found
-- returns {now, the next cursor or '', tasks seen, for each fault: agent or '', id or '', what}
--          what: lost, stranded, asleep or unreadable
local phase, cursor, repair = sub(ARGV[1], 1, 1), sub(ARGV[1], 2), ARGV[3] == '1'
local reply, seen, repaired = { now, '', 0 }, 0, false
local LOST_, STRANDED, ASLEEP, UNREADABLE = 'lost', 'stranded', 'asleep', 'unreadable'
local function fault(agent, id, what)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = agent, id, what
  repaired = repaired or repair
end

local leased = {}
for _, fence in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
  local found = byte(fence) ~= 64 and redis.call('HMGET', KEYS[4], fence, fence .. 'r') or {}
  local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
  if not whole or not found[1] then refs = {} end
  for i = 1, #refs / 3 do
    if byte(found[1], i) == RUNNING then leased[refs[3 * i - 2] .. ':' .. refs[3 * i - 1]] = true end
  end
end

-- comes_back says whether something will put back what is parked at a place.
local function comes_back(name, ref)
  if byte(name) ~= 64 then return redis.call('HEXISTS', KEYS[6], name) == 1 end
  local scope = name == '@t' and 't:' .. ref or sub(name, 2)
  if redis.call('ZSCORE', base .. 'open', scope) then return true end
  local held = redis.call('HGET', base .. 'holds', scope)
  local till = held and tonumber(sub(held, 1, 13))
  return till and (till == 0 or redis.call('ZSCORE', KEYS[5], '@' .. scope))
end

local function check(agent, id, live, single)
  local ref = agent .. ':' .. id
  local place_, due, name = where(agent, id, live, single)
  seen = seen + 1
  if place_ == 'p' and not comes_back(name, ref) then
    fault(agent, id, STRANDED)
    if repair then
      lift(agent, id, live, single, place_, name)
      place(agent, single, live, id, due)
    end
  elseif place_ == 'r' and not leased[ref] then
    fault(agent, id, LOST_)
    if repair then place(agent, single, live, id, now) end
  end
end

-- An agent with queues has to be looked at when the first of its tasks is due, at each level where it has some.
local function wakes(agent, value)
  local first, right = nil, value
  for level = 1, 3 do
    local due = tonumber(redis.call('ZRANGE', base .. 'queue:' .. level .. ':' .. agent, 0, 0, 'WITHSCORES')[2])
    if due then
      first = math.min(first or due, due)
      right = grown(right, level, 0)
    end
  end
  local score = tonumber(redis.call('ZSCORE', KEYS[1], agent))
  if right == value and not (first and (not score or score > math.max(first, now))) then return end
  fault(agent, '', ASLEEP)
  if repair then
    redis.call('HSET', KEYS[2], agent, right)
    if first then redis.call('ZADD', KEYS[1], 'LT', first, agent) end
  end
end

-- adopt gives an agent the tasks that are there under its name.
local adopted = {}
local function adopt(agent, value)
  if adopted[agent] then return end
  adopted[agent] = true
  local new, from = 'M00', '0'
  if value and byte(value) == 83 and parse(sub(value, 2)) then new = spread(agent, sub(value, 2)) end
  repeat
    local page = redis.call('HSCAN', KEYS[3], from, 'MATCH', agent .. ':*', 'COUNT', 1000)
    from = page[1]
    for i = 1, #page[2], 2 do
      if parse(page[2][i + 1]) then new = grown(new, tonumber(sub(page[2][i + 1], 8, 8)), 1) end
    end
  until from == '0'
  redis.call('HSET', KEYS[2], agent, new)
end

local page
if phase == 'a' then
  page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', ARGV[2])
  for i = 1, #page[2], 2 do
    local agent, value = page[2][i], page[2][i + 1]
    local live = byte(value) == 83 and sub(value, 2)
    if live and parse(live) then
      check(agent, parse(live), live, true)
    elseif byte(value) == 77 and tonumber(sub(value, 2)) then
      wakes(agent, value)
    else
      fault(agent, '', UNREADABLE)
    end
  end
  reply[2] = page[1] == '0' and 't0' or 'a' .. page[1]
else
  page = redis.call('HSCAN', KEYS[3], cursor, 'COUNT', ARGV[2])
  for i = 1, #page[2], 2 do
    local live = page[2][i + 1]
    local agent, id = string.match(page[2][i], '^([^:]*):(.*)$')
    if not agent or parse(live) ~= id then
      fault(agent or '', id or page[2][i], UNREADABLE)
    else
      local value = redis.call('HGET', KEYS[2], agent)
      if not value or byte(value) ~= 77 or adopted[agent] then
        fault(agent, id, LOST_)
        if repair then adopt(agent, value) end
        seen = seen + 1
        if repair and where(agent, id, live, false) == 'r' and not leased[agent .. ':' .. id] then place(agent, false, live, id, now) end
      else
        check(agent, id, live, false)
      end
    end
  end
  if page[1] ~= '0' then reply[2] = 't' .. page[1] end
end
placed()

-- The hint has to be there in time, and to name the kinds that are parked.
local function hinted()
  local ms, kinds = string.match(redis.call('GET', base .. 'due') or '', '^(%d*)(.*)$')
  if not ms then return false end
  if ms ~= '' and tonumber(ms) <= now then return true end -- whoever looks claims, which works it out anew
  local still = stopped()
  for _, name in ipairs(still and { 'leases' } or { 'agenda', 'leases' }) do
    local due = tonumber(redis.call('ZRANGE', base .. name, 0, 0, 'WITHSCORES')[2])
    if due and (ms == '' or tonumber(ms) > due) then return false end
  end
  for _, kind in ipairs(still and {} or redis.call('HKEYS', KEYS[6])) do
    if kind ~= '@' and not string.find(kinds .. '|', '|' .. kind .. '|', 1, true) then return false end
  end
  return true
end
if repaired then
  look()
  wake(now)
elseif reply[2] == '' and not hinted() then
  fault('', '', ASLEEP)
  if repair then
    look()
    wake(now)
  end
end
reply[3] = seen
return reply
