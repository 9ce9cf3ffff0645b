-- settle: end runs. A run that no longer holds its task changes nothing; one that is settled already is settled.
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] state
-- KEYS[5] claims
-- KEYS[6] leases
-- KEYS[7] finished
-- ARGV[1] retention of finished records, ms
-- ARGV[2] most finished records of an agent, of those that failed and of the others
-- ARGV[3..] 9 for each run: fence, index in its claim, agent, id, verb, due, state or '', record, group key or ''
--           verb: c completed, f failed, x cancelled (record is kept); r again at due (ms, or minus a delay in ms);
--           b given back, due is the one it had
-- returns {now, for each run: 0 when its lease is lost, else 1 or the new due time}
local retention, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local n = (#ARGV - 2) / 9
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full

local fences, names, marks, values, done = {}, {}, {}, {}, {}
for i = 1, n do
  fences[i] = ARGV[9 * i - 6]
  names[i] = ARGV[9 * i - 4]
end
for i, m in ipairs(redis.call('HMGET', KEYS[5], unpack(fences))) do marks[fences[i]] = m end
local lives, refs = {}, {}
for i, v in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  values[names[i]] = v
  if v and byte(v) == 77 then refs[#refs + 1] = names[i] .. ':' .. ARGV[9 * i - 3] end
end
if #refs > 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do lives[refs[i]] = live end
end
for i, v in ipairs(redis.call('HMGET', KEYS[7], unpack(names))) do done[names[i]] = v end

local task_dels, state_dels, state_sets = {}, {}, {}
local changed, history, finished_changed = {}, {}, {}
local counts = { c = 0, f = 0, x = 0, r = 0, b = 0 }
local groups, earliest, touched, ended = {}, nil, {}, 0

local function remember(agent, id, record)
  local value = done[agent]
  if value ~= '*' then finished_changed[agent] = true end
  if value and value ~= '*' then
    local other, old = outline(value)
    if other ~= id and ended_at(old) > now - retention then
      history[agent] = { other, old }
      value = '*'
    else
      value = false
    end
  end
  if not value then
    done[agent] = inline(id, record)
    return
  end
  done[agent] = '*'
  local h = history[agent]
  if not h then
    h = {}
    history[agent] = h
  end
  h[#h + 1] = id
  h[#h + 1] = record
end

local function finish(i, verb, agent, id, single)
  local ref = agent .. ':' .. id
  if single then
    values[agent] = false
  else
    task_dels[#task_dels + 1] = ref
    local left = (tonumber(sub(values[agent], 3)) or 1) - 1
    values[agent] = left > 0 and sub(values[agent], 1, 2) .. left
  end
  changed[agent] = true
  state_dels[#state_dels + 1] = ref
  remember(agent, id, verb .. string.format('%013.0f', now) .. ARGV[9 * i + 1])
  local group = ARGV[9 * i + 2]
  if group ~= '' then
    groups[group] = groups[group] or { live = 0, c = 0, f = 0, x = 0 }
    groups[group].live = groups[group].live - 1
    groups[group][verb] = groups[group][verb] + 1
  end
  return 1
end

local function again(i, agent, id, live, single)
  local due, state = tonumber(ARGV[9 * i - 1]), ARGV[9 * i]
  if due <= 0 then due = now - due end
  if state ~= '' then
    state_sets[#state_sets + 1] = agent .. ':' .. id
    state_sets[#state_sets + 1] = state
  end
  place(agent, single, live, id, due)
  if not earliest or due < earliest then earliest = due end
  return due
end

local reply = { now }
for i = 1, n do
  local fence, index, agent, id = fences[i], tonumber(ARGV[9 * i - 5]) + 1, names[i], ARGV[9 * i - 3]
  local verb, mark = ARGV[9 * i - 2], marks[fence] and index <= #marks[fence] - 16 and byte(marks[fence], index)
  reply[i + 1] = mark == SETTLED and 1 or 0
  if mark == RUNNING then
    local live, single = lives[agent .. ':' .. id], false
    if not live then live, single = find(agent, values[agent], id) end
    if live then
      if verb == 'r' or verb == 'b' then
        reply[i + 1] = again(i, agent, id, live, single)
      else
        reply[i + 1] = finish(i, verb, agent, id, single)
      end
      counts[verb] = counts[verb] + 1
    end
    marks[fence] = sub(marks[fence], 1, index - 1) .. string.char(SETTLED) .. sub(marks[fence], index + 1)
    touched[fence] = true
    ended = ended + 1
  end
end
if ended == 0 then return reply end

local agent_sets, agent_dels = {}, {}
for agent in pairs(changed) do
  if values[agent] then
    agent_sets[#agent_sets + 1] = agent
    agent_sets[#agent_sets + 1] = values[agent]
  else
    agent_dels[#agent_dels + 1] = agent
  end
end
if #agent_dels > 0 then redis.call('HDEL', KEYS[2], unpack(agent_dels)) end
if #agent_sets > 0 then redis.call('HSET', KEYS[2], unpack(agent_sets)) end
if #task_dels > 0 then redis.call('HDEL', KEYS[3], unpack(task_dels)) end
if #state_dels > 0 then redis.call('HDEL', KEYS[4], unpack(state_dels)) end
if #state_sets > 0 then redis.call('HSET', KEYS[4], unpack(state_sets)) end
placed()
local finished_sets = {}
for agent in pairs(finished_changed) do
  finished_sets[#finished_sets + 1] = agent
  finished_sets[#finished_sets + 1] = done[agent]
end
if #finished_sets > 0 then redis.call('HSET', KEYS[7], unpack(finished_sets)) end
for agent, records in pairs(history) do
  local key = base .. 'history:' .. agent
  redis.call('HSET', key, unpack(records))
  if redis.call('HLEN', key) > 2 * most then count('trimmed', trim(key, most, now - retention)) end
end
for group, c in pairs(groups) do
  local key = base .. 'group:' .. group
  local live = redis.call('HINCRBY', key, 'live', c.live)
  for verb, field in pairs({ c = 'completed', f = 'failed', x = 'cancelled' }) do
    if c[verb] > 0 then redis.call('HINCRBY', key, field, c[verb]) end
  end
  if live <= 0 then
    redis.call('HSET', key, 'over', now + retention)
    redis.call('PEXPIRE', key, retention)
  end
end
local closed = false
for fence in pairs(touched) do
  local value = marks[fence]
  if string.find(sub(value, 1, -17), '0', 1, true) then
    redis.call('HSET', KEYS[5], fence, value)
  else
    close(fence, value)
    closed = true
  end
end
count('running', -ended)
count('live', -(counts.c + counts.f + counts.x))
count('completed', counts.c)
count('failed', counts.f)
count('cancelled', counts.x)
count('again', counts.r)
count('released', counts.b)
if earliest then announce(earliest) end
if closed then look() end
return reply
