-- submit: store new tasks; a task whose id is live, or finished within the retention, is left as it is.
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] finished
-- ARGV[1] mode: each (every task for itself), all (all or nothing) or check (write nothing)
-- ARGV[2] most live tasks an agent may have
-- ARGV[3] retention of finished records, ms
-- ARGV[4..] 5 for each task: agent, due (ms, or minus a delay in ms), record ('' to check), group key or '', id
-- returns {now, for each task: its due time, 0 (exists, or would be stored) or -1 (over the limit)}
local mode, most, retention = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local n = (#ARGV - 3) / 5
local names, refs, reffed = {}, {}, {}
for i = 1, n do names[i] = ARGV[5 * i - 1] end
local values = redis.call('HMGET', KEYS[2], unpack(names))
local done = redis.call('HMGET', KEYS[4], unpack(names))
local current, stored = {}, {}
for i = 1, n do
  local value = values[i]
  current[names[i]] = value
  if value and byte(value) == 77 then
    refs[#refs + 1] = names[i] .. ':' .. ARGV[5 * i + 3]
  end
end
if #refs > 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do stored[refs[i]] = live end
end

local function remembered(agent, value, id)
  local record
  if value == '*' then
    record = redis.call('HGET', base .. 'history:' .. agent, id)
  elseif value then
    local other, r = outline(value)
    if other == id then record = r end
  end
  return record and ended_at(record) > now - retention
end

local changed = {}
local reply, created, groups, earliest, refused = { now }, 0, {}, nil, false
for i = 1, n do reply[i + 1] = 0 end
local clock = mode == 'check' and 0 or ticks(n)
local checked = {} -- how many tasks an agent would have, when nothing is written
for i = 1, n do
  local agent, id = names[i], ARGV[5 * i + 3]
  local value = current[agent]
  local kind = value and byte(value)
  if not (kind == 83 and parse(sub(value, 2)) or kind == 77 and tonumber(sub(value, 2))) then kind = nil end
  local live_count = checked[agent] or not kind and 0 or kind == 83 and 1 or tonumber(sub(value, 3))
  local exists = kind == 83 and parse(sub(value, 2)) == id or kind == 77 and stored[agent .. ':' .. id]
  local known = exists or remembered(agent, done[i], id)
  if not known and live_count >= most then
    reply[i + 1] = -1
    refused = true
  elseif not known and mode == 'check' then
    checked[agent] = live_count + 1
  elseif not known then
    local due = tonumber(ARGV[5 * i])
    due = due <= 0 and now - due or math.max(due, now) -- nobody gets ahead of others by a time long past
    local live = struct.pack('>I7', clock + i - 1) .. ARGV[5 * i + 1]
    if not kind then
      current[agent] = 'S' .. live
      place(agent, true, live, id, due)
    else
      if kind == 83 then
        stored[agent .. ':' .. parse(sub(value, 2))] = true
        value = spread(agent, sub(value, 2), changed[agent])
      end
      current[agent] = grown(value, tonumber(sub(live, 8, 8)))
      stored[agent .. ':' .. id] = true
      hold(agent, live, id)
      place(agent, false, live, id, due)
    end
    changed[agent] = math.min(changed[agent] or due, due)
    created = created + 1
    reply[i + 1] = due
    if not earliest or due < earliest then earliest = due end
    local group = ARGV[5 * i + 2]
    if group ~= '' then groups[group] = (groups[group] or 0) + 1 end
  end
end
if (mode == 'all' and refused) or created == 0 then return reply end

local agent_sets = {}
for agent in pairs(changed) do
  agent_sets[#agent_sets + 1] = agent
  agent_sets[#agent_sets + 1] = current[agent]
end
redis.call('HSET', KEYS[2], unpack(agent_sets))
placed()
for group, k in pairs(groups) do join(group, k) end
count('submitted', created)
count('live', created)
announce(earliest)
return reply
