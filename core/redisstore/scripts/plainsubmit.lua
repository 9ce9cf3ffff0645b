-- plainsubmit: store new tasks. It changes nothing where an id may be known, or a task makes its agent one with many, and the caller
--        sends submit instead. Straight on, as plainclaim.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] finished
-- KEYS[4] kinds
-- KEYS[5] counters
-- KEYS[6] due
-- KEYS[7] answers
-- KEYS[8] tasks
-- ARGV[1] most live tasks an agent may have
-- ARGV[2] how many of them in the agenda
-- ARGV[3] number of kinds
-- ARGV[4..] 2 for each kind: kind, how many of the tasks it has
-- ARGV[..] 4 for each task: agent, id, due (ms, or minus a delay in ms), record
-- returns {now} if something is out of the ordinary, else {now, the due time of each task, {agent, profile of each that has one} if the
--          partition has any}; the last argument is who calls: see answers

local FIRST = 3 -- arguments in front of the kinds
local PER_KIND = 2
local PER_TASK = 4
local ODD = { now }
local CALLER = ARGV[#ARGV]
-- rule: repeated-call
if byte(CALLER) ~= byte('0') then return ODD end -- it may have been carried out before
local most, few = tonumber(ARGV[1]), tonumber(ARGV[2])
local tasks_at = FIRST + PER_KIND * tonumber(ARGV[3])
local n = (#ARGV - 1 - tasks_at) / PER_TASK

-- 1. Whether an id is known, or an agent has a quota.
local names, values, refs, others = {}, {}, {}, {}
for i = 1, n do names[i] = ARGV[tasks_at + PER_TASK * i - 3] end
-- rule: quotas
local TENANTS = redis.call('EXISTS', base .. 'profiles', base .. 'quotas')
for _, quota in ipairs(TENANTS == 2 and redis.call('HMGET', base .. 'quotas', unpack(names)) or {}) do
  -- guard: plain-submit-quota
  if quota then return ODD end
end
for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  values[names[i]] = value
  if value and byte(value) ~= byte(INLINE) then others[#others + 1] = names[i] .. ':' .. ARGV[tasks_at + PER_TASK * i - 2] end
end
-- rule: id-is-live
if #others > 0 and redis.call('EXISTS', base .. 'bytes') == 1 then -- one that is there may be large
  for _, ref in ipairs(others) do
    if redis.call('HEXISTS', KEYS[8], ref) == 1 then return ODD end
  end
elseif #others > 0 then
  for _, live in ipairs(redis.call('HMGET', KEYS[8], unpack(others))) do
    if live then return ODD end
  end
end
for i, kept in ipairs(redis.call('HMGET', KEYS[3], unpack(names))) do
  -- guard: plain-submit-history
  local id = ARGV[tasks_at + PER_TASK * i - 2]
  -- rule: id-has-ended
  if kept == HISTORY then
    if redis.call('HEXISTS', base .. 'history:' .. names[i], id) == 1 then return ODD end
    -- guard: plain-submit-finished
  elseif kept and sub(kept, 3, 2 + #id) == id then
    return ODD
  end
end
-- rule: id-was-dropped
if redis.call('EXISTS', base .. 'gone') == 1 then
  for i = 1, n do refs[i] = names[i] .. ':' .. ARGV[tasks_at + PER_TASK * i - 2] end
  for _, gone in ipairs(redis.call('ZMSCORE', base .. 'gone', unpack(refs))) do
    if gone then return ODD end
  end
end

-- 2. Where each task goes: inline if it is the only one of its agent, into the agenda if its agent has few, else into a queue.
local counters = redis.call('HMGET', KEYS[5], 'clock', 'submitted', 'live')
local clock = math.max((tonumber(counters[1]) or 0) + 1, now * 1024)
local changed, stored, adds, queues, seen, short = {}, {}, { 'LT' }, {}, {}, false
local dues, times, reply, first, hurried = {}, {}, { now }, math.huge, math.huge -- hurried: of level 1
for i = 1, n do
  local at = tasks_at + PER_TASK * (i - 1)
  local agent, id, asked, record = names[i], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local due = dues[asked]
  if not due then -- many are due at the same time: now, mostly
    local ms = tonumber(asked)
    -- rule: not-before-now
    ms = ms <= 0 and now - ms or math.max(ms, now) -- nobody gets ahead of others by a time long past
    if ms < first then first = ms end
    due = string.format('%.0f', ms)
    dues[asked], times[asked] = due, ms
  end
  reply[i + 1] = times[asked]
  -- guard: plain-submit-urgent
  if byte(record) == byte('1') and times[asked] < hurried then hurried = times[asked] end
  local value, seq, member = values[agent], struct.pack('>I7', clock + i - 1), agent
  -- guard: plain-long-alone
  -- rule: long-alone
  if not value and (few < 2 or #record < INLINE_MOST) then
    values[agent] = INLINE .. seq .. record
  else
    local ref, level = agent .. ':' .. id, byte(record)
    if seen[ref] then return ODD end
    seen[ref] = true
    local form = value and byte(value)
    if form == byte(QUEUED) then
      local mask, live = sub(value, 2, 2), tonumber(sub(value, 3))
      if not live or live >= most or ({ ['1'] = 49, ['2'] = 50, ['4'] = 51 })[mask] ~= level then return ODD end
      values[agent] = QUEUED .. mask .. live + 1
      local key = base .. 'queue:' .. string.char(level) .. ':' .. agent
      local q = queues[key]
      if not q then
        q = {}
        queues[key] = q
      end
      q[#q + 1] = due
      q[#q + 1] = seq .. id
    else
      local named = seq .. string.char(math.floor(#id / 256), #id % 256) .. id
      local long, at_id = nil, 0
      if not form then
        values[agent], short = FEW .. string.char(level, 1, 0, 0) .. named, true
      elseif form == byte(INLINE) then
        long = #value - 1
        if byte(value, 9) ~= level or most < 2 or few < 2 then return ODD end
        at_id = 10
        if sub(value, at_id + 2, at_id + 1 + byte(value, at_id) * 256 + byte(value, at_id + 1)) == id then return ODD end
        values[agent] = FEW .. string.char(level, 2, math.floor(long / 256), long % 256) .. sub(value, 2) .. named
      elseif form == byte(FEW) then
        local live, high, low = byte(value, 3, 5)
        -- guard: plain-limit
        -- rule: few-in-the-agenda most-live-tasks
        if byte(value, 2) ~= level or live >= few or live >= most then return ODD end
        at_id = 14
        -- guard: plain-first
        if high + low > 0 and sub(value, at_id + 2, at_id + 1 + byte(value, at_id) * 256 + byte(value, at_id + 1)) == id then return ODD end
        values[agent] = sub(value, 1, 2) .. string.char(live + 1) .. sub(value, 4) .. named
      else
        return ODD
      end
      member = agent .. ':' .. seq .. id
    end
    stored[#stored + 1] = ref
    stored[#stored + 1] = seq .. record
  end
  changed[agent] = true
  adds[2 * i], adds[2 * i + 1] = due, member
end

-- 3. They are stored.
redis.call(
  'HSET', KEYS[5], 'clock', string.format('%.0f', clock + n - 1),
  'submitted', string.format('%.0f', (tonumber(counters[2]) or 0) + n), 'live', string.format('%.0f', (tonumber(counters[3]) or 0) + n)
)
local sets = {}
for agent in pairs(changed) do
  sets[#sets + 1] = agent
  sets[#sets + 1] = values[agent]
end
-- Values that are short would make a list of the agents, which each look reads through: see counting.put_all.
local live = tonumber(counters[3]) or 0
local grows = short and live <= FEW_FIELDS and live + n > FEW_FIELDS
if grows then redis.call('HSET', KEYS[2], '', LONG_FIELD) end
redis.call('HSET', KEYS[2], unpack(sets))
if grows then redis.call('HDEL', KEYS[2], '') end
if #stored > 0 then redis.call('HSET', KEYS[8], unpack(stored)) end
redis.call('ZADD', KEYS[1], unpack(adds))
for key, q in pairs(queues) do redis.call('ZADD', key, unpack(q)) end
for i = 1, tonumber(ARGV[3]) do
  redis.call('HINCRBY', KEYS[4], COUNT_LIVE .. ARGV[FIRST + 2 * i - 1], ARGV[FIRST + 2 * i])
end

-- 4. Whoever sleeps past the first of them is told.
local found = redis.call('MGET', KEYS[6], base .. 'watched')
local hint = found[1] or ''
local ms = tonumber(hint) or tonumber(string.match(hint, '^%d*'))
-- guard: plain-submit-hint
-- rule: wakes
if not ms or ms > first then
  local due = string.format('%.0f', first)
  redis.call('SET', KEYS[6], due .. string.match(hint, '^%d*(.*)$'))
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. ' ' .. due)
end
-- rule: urgent-wakes
local till = hurried < math.huge and redis.call('GET', base .. 'urgent')
if till and hurried < tonumber(till) then
  redis.call('DEL', base .. 'urgent')
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. ' 3')
end
-- rule: profiles
if TENANTS > 0 then
  local profiles = {}
  for agent in pairs(changed) do
    local profile = redis.call('HGET', base .. 'profiles', agent)
    if profile then profiles[#profiles + 1], profiles[#profiles + 2] = agent, profile end
  end
  reply[n + 2] = profiles
end
redis.call('HSET', KEYS[7], sub(CALLER, 10), sub(CALLER, 2, 9) .. cmsgpack.pack(reply))
if found[2] then reply[1] = -now end
return reply
