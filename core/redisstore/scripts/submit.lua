-- submit: store new tasks; what becomes of one whose id is live, or finished within the retention, it says itself.
-- needs: known answers
-- needs to replace: look holds finished known grouped answers
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] finished
-- ARGV[1] mode: each (every task for itself), all (all or nothing) or check (write nothing)
-- ARGV[2] most live tasks an agent may have, and KiB of large ones, with a | between
-- ARGV[3] retention of finished records, ms
-- ARGV[4..] 7 for each task: agent, due (ms, or minus a delay in ms), record (to check, what it weighs), group key or '', id, kind, rule
--           rule: '' keep what is there, else k, f (refuse) or r (replace) and, each with its length, the first state,
--           the version that is to be replaced, and its group key as the caller takes it: see group_of
-- returns {now, for each task: its due time, '=' and its due time if it was replaced, 0 (exists, or would be stored),
--          -1 (over the limit), -4 (of bytes), -2 (refused), -3 (changed) or -5 (it runs, and was cancelled)}

local mode, retention = ARGV[1], tonumber(ARGV[3])
local most, heaviest = string.match(ARGV[2], '^(%d+)|(%d+)$')
most, heaviest = tonumber(most), tonumber(heaviest)
-- The answers.
local EXISTS = 0
local OVER = -1
local REFUSED = -2
local CHANGED = -3
local HEAVY = -4
local ENDING = -5
-- The letters of rules, and the modes.
local RULE_KEEP = 'k'
local RULE_REFUSE = 'f'
local RULE_REPLACE = 'r'
local ALL_OR_NOTHING = 'all'
local CHECK = 'check'
local n = (#ARGV - 3) / 7
local names, refs = {}, {}
for i = 1, n do names[i] = ARGV[7 * i - 3] end
local values = redis.call('HMGET', KEYS[2], unpack(names))
local finished = redis.call('HMGET', KEYS[4], unpack(names))
local current, stored, ends = {}, {}, {}
for i = 1, n do
  local value = values[i]
  current[names[i]] = value
  if value and byte(value) == byte(QUEUED) then
    refs[#refs + 1] = names[i] .. ':' .. ARGV[7 * i + 1]
  end
end
if #refs > 0 and redis.call('EXISTS', base .. 'bytes') == 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do stored[refs[i]] = live end
elseif #refs > 0 then -- what may be large is read only if it is to be replaced; of others it matters that they exist
  for i = 1, n do
    local ref, rule = names[i] .. ':' .. ARGV[7 * i + 1], ARGV[7 * i + 3]
    local several = values[i] and byte(values[i]) == byte(QUEUED)
    if several and byte(rule) == byte(RULE_REPLACE) then
      stored[ref] = redis.call('HGET', KEYS[3], ref)
    elseif several and stored[ref] == nil then
      stored[ref] = redis.call('HEXISTS', KEYS[3], ref) == 1 and 'exists'
    end
  end
end

local GONE = redis.call('EXISTS', base .. 'gone') == 1
if GONE then
  for i = 1, n do refs[i] = names[i] .. ':' .. ARGV[7 * i + 1] end
  ends = redis.call('ZMSCORE', base .. 'gone', unpack(refs, 1, n))
end

local records = {}
local function record_of(i)
  if records[i] == nil then records[i] = recorded(names[i], finished[i], ARGV[7 * i + 1]) or false end
  return records[i]
end

local function known_finished(i)
  local record = record_of(i)
  return record and ended_at(record) > now - retention or end_of(ends[i], retention)
end

local function version(ref, live)
  if not live then return '' end
  local state = redis.call('HGET', base .. 'state', ref) or ''
  return redis.sha1hex(sub(live, 8) .. '\0' .. sub(state, 2))
end

local taken = {} -- what this call replaces: another call that was joined to it has to look again
-- verdict says what stands against storing a task: nil for nothing, or a live one that is to be replaced.
local function verdict(i, rule, live)
  if rule.name == RULE_REPLACE then
    local ref = names[i] .. ':' .. ARGV[7 * i + 1]
    if taken[ref] or version(ref, live) ~= rule.version then return CHANGED end
    local order = live and redis.call('HGET', base .. 'orders', ref)
    local ends = order and byte(order) == byte(ORDER_CANCEL)
    return ends and where(names[i], ARGV[7 * i + 1], live, byte(values[i]) == byte(INLINE)) == IS_RUNNING and ENDING or nil
  end
  local exists = live or (finished[i] or ends[i]) and known_finished(i)
  if exists then return rule.name == RULE_REFUSE and REFUSED or EXISTS end
end

local KEEP = { name = RULE_KEEP, state = '' }
local function rule_of(text)
  local name, state, seen, group = struct.unpack('>c1I4c0I4c0I4c0', text)
  return { name = name, state = state, version = seen, group = group }
end

-- A task that is to be replaced is taken out of where it is once it is clear that nothing is refused.
local replaced = {}
local function replace(i, rule, live, single, due)
  local agent, id = names[i], ARGV[7 * i + 1]
  local place_, _, name = where(agent, id, live, single)
  local renewed_live = sub(live, 1, 7) .. ARGV[7 * i - 1]
  local runs = place_ == IS_RUNNING
  local _, kind = parse(live)
  local new_kind = ARGV[7 * i + 2]
  taken[agent .. ':' .. id] = true
  replaced[#replaced + 1] = function()
    local ref = agent .. ':' .. id
    if dozing(redis.call('HGET', base .. 'pulse', ref)) then rested(kind, -1) end
    redis.call('HDEL', base .. 'pulse', ref)
    more(more_live, kind, -1)
    more(more_live, new_kind, 1)
    local group, new_group = group_of(agent, id, live, rule.group), ARGV[7 * i]
    if group ~= new_group then
      if group ~= '' then leave(group, 1, retention) end
      if new_group ~= '' then join(new_group, 1) end
      enroll(agent, live, id, new_group)
    end
    if runs then
      more(more_running, kind, -1)
      more(more_running, new_kind, 1)
      redis.call('HSET', base .. 'orders', ref, ORDER_REPLACE .. string.format('%013.0f', due) .. rule.state)
      return
    end
    lift(agent, id, live, single, place_, name)
    redis.call('HDEL', base .. 'orders', ref)
    if rule.state ~= '' then
      redis.call('HSET', base .. 'state', ref, rule.state)
    else
      redis.call('HDEL', base .. 'state', ref)
    end
  end
  return renewed_live, place_ ~= IS_RUNNING
end

local dirty, dues, state_sets, again = {}, {}, {}, {}
local reply, created, groups, earliest, refused = { now }, 0, {}, nil, false
for i = 1, n do reply[i + 1] = EXISTS end
local clock = mode == CHECK and 0 or ticks(n)

-- heavier says whether an agent would have too many bytes with a task, whose old definition goes if it is replaced; else it
-- has them. What is small costs nothing here.
local hefts = {} -- KiB of agents
local function heavier(i, live)
  local record = ARGV[7 * i - 1]
  local kib = mode == CHECK and tonumber(record) or heft(record, 0)
  local was = live and heft(live, 7) or 0
  if kib == 0 and was == 0 then return false end
  local agent, value = names[i], values[i]
  local have = hefts[agent]
  if not have then have = value and (byte(value) == byte(INLINE) and heft(value, 8) or tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)) or 0 end
  hefts[agent] = have
  if kib > was and have + kib - was > heaviest then return true end
  hefts[agent] = have + kib - was
  return false
end

local checked = {} -- how many tasks an agent would have, when nothing is written
local function store(i, rule)
  local agent, id = names[i], ARGV[7 * i + 1]
  local value, live = current[agent], nil
  local shape = value and byte(value)
  if not (shape == byte(INLINE) and parse(sub(value, 2)) or shape == byte(QUEUED) and tonumber(sub(value, 2))) then shape = nil end
  local live_count = checked[agent] or not shape and 0 or shape == byte(INLINE) and 1 or tonumber(sub(value, 3))
  if shape == byte(QUEUED) then live = stored[agent .. ':' .. id] end
  if shape == byte(INLINE) and parse(sub(value, 2)) == id then live = sub(value, 2) end
  local against
  if value or GONE or finished[i] or rule ~= KEEP then against = verdict(i, rule, live) end
  if not against and not live and live_count >= most then against = OVER end
  if not against and heavier(i, live) then against = HEAVY end
  local due = tonumber(ARGV[7 * i - 2])
  due = due <= 0 and now - due or math.max(due, now) -- nobody gets ahead of others by a time long past
  if against then
    reply[i + 1] = against
    refused = refused or against < EXISTS
  elseif mode == CHECK then
    if not live then checked[agent] = live_count + 1 end
  elseif live then
    local renewed_live, waits = replace(i, rule, live, values[i] and byte(values[i]) == byte(INLINE), due)
    if shape == byte(INLINE) and heft(renewed_live, 7) == 0 then
      current[agent] = INLINE .. renewed_live
    elseif shape == byte(INLINE) then -- it is held inline no more
      shape, current[agent] = 77, grown(NEW, tonumber(sub(renewed_live, 8, 8)), 1)
      stored[agent .. ':' .. id] = renewed_live
      hold(agent, renewed_live, id)
    else
      current[agent] = grown(value, tonumber(sub(renewed_live, 8, 8)), 0)
      stored[agent .. ':' .. id] = renewed_live
      hold(agent, renewed_live, id)
      if #live >= LARGE_BODY then heft_adds[agent] = (heft_adds[agent] or 0) - heft(live, 7) end
    end
    dirty[agent] = true
    if waits then
      place(agent, shape == byte(INLINE), renewed_live, id, due)
      if shape == byte(INLINE) then dues[agent] = due end
      if not earliest or due < earliest then earliest = due end
    end
    reply[i + 1] = string.format('=%.0f', due)
  else
    live = struct.pack('>I7', clock + i - 1) .. ARGV[7 * i - 1]
    if finished[i] then again[#again + 1] = i end
    if not shape and heft(live, 7) == 0 then
      current[agent] = INLINE .. live
      place(agent, true, live, id, due)
      dues[agent] = due
    else
      if not shape then value = NEW end
      if shape == byte(INLINE) then
        stored[agent .. ':' .. parse(sub(value, 2))] = sub(value, 2)
        value = spread(agent, sub(value, 2), dues[agent])
      end
      current[agent] = grown(value, tonumber(sub(live, 8, 8)), 1)
      stored[agent .. ':' .. id] = live
      hold(agent, live, id)
      place(agent, false, live, id, due)
    end
    if rule.state ~= '' then
      state_sets[#state_sets + 1] = agent .. ':' .. id
      state_sets[#state_sets + 1] = rule.state
    end
    more(more_live, ARGV[7 * i + 2], 1)
    dirty[agent] = true
    created = created + 1
    reply[i + 1] = due
    if not earliest or due < earliest then earliest = due end
    local group = ARGV[7 * i]
    if group ~= '' then
      groups[group] = (groups[group] or 0) + 1
      enroll(agent, live, id, group)
    end
  end
end
-- What is replaced comes first, as it is taken out of where it is before anything is placed: also before a task that is new
-- makes its agent one with queues.
local function there(i)
  local value, id = values[i], ARGV[7 * i + 1]
  if value and byte(value) == byte(INLINE) then return parse(sub(value, 2)) == id end
  return stored[names[i] .. ':' .. id]
end
local later = {}
for i = 1, n do
  local rule = ARGV[7 * i + 3]
  if rule ~= '' and byte(rule) == byte(RULE_REPLACE) then
    if there(i) then store(i, rule_of(rule)) else later[#later + 1] = i end
  end
end
for _, i in ipairs(later) do store(i, rule_of(ARGV[7 * i + 3])) end
for i = 1, n do
  local rule = ARGV[7 * i + 3]
  if rule == '' then
    store(i, KEEP)
  elseif byte(rule) ~= byte(RULE_REPLACE) then
    store(i, rule_of(rule))
  end
end
if (mode == ALL_OR_NOTHING and refused) or (created == 0 and #replaced == 0) then return reply end

for _, apply in ipairs(replaced) do apply() end
for _, i in ipairs(again) do -- the record of a task that begins anew goes
  local record = record_of(i)
  if record then unrecord(names[i], finished[i], ARGV[7 * i + 1], record) end
end
local agent_sets = {}
for agent in pairs(dirty) do
  agent_sets[#agent_sets + 1] = agent
  agent_sets[#agent_sets + 1] = current[agent]
end
redis.call('HSET', KEYS[2], unpack(agent_sets))
if #state_sets > 0 then redis.call('HSET', base .. 'state', unpack(state_sets)) end
placed()
for group, k in pairs(groups) do join(group, k) end
count('submitted', created)
count('live', created)
counted()
if earliest then announce(earliest) end
return kept_answer(reply)
