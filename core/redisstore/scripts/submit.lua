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
local FIELDS = 7 -- of each task
local FIRST = 3 -- arguments in front of the tasks
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

-- 1. What is known of the tasks: the values of their agents, those of their ids that are live, and the records of their agents.
-- Each key is read once for all tasks.
local mode, retention = ARGV[1], tonumber(ARGV[3])
local most, heaviest = string.match(ARGV[2], '^(%d+)|(%d+)$')
most, heaviest = tonumber(most), tonumber(heaviest)
local n = (#ARGV - FIRST) / FIELDS
local names, ids, rules, refs = {}, {}, {}, {}
for i = 1, n do
  local at = FIELDS * (i - 1) + FIRST
  names[i], ids[i], rules[i] = ARGV[at + 1], ARGV[at + 5], ARGV[at + 7]
end
local values = redis.call('HMGET', KEYS[2], unpack(names))
local finished = redis.call('HMGET', KEYS[4], unpack(names))
local current, stored, ends = {}, {}, {}
for i = 1, n do
  local value = values[i]
  current[names[i]] = value
  if value and byte(value) == byte(QUEUED) then refs[#refs + 1] = names[i] .. ':' .. ids[i] end
end
if #refs > 0 and redis.call('EXISTS', base .. 'bytes') == 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do stored[refs[i]] = live end
elseif #refs > 0 then -- what may be large is read only if it is to be replaced; of others it matters that they exist
  for i = 1, n do
    local ref, several = names[i] .. ':' .. ids[i], values[i] and byte(values[i]) == byte(QUEUED)
    if several and byte(rules[i]) == byte(RULE_REPLACE) then
      stored[ref] = redis.call('HGET', KEYS[3], ref)
    elseif several and stored[ref] == nil then
      stored[ref] = redis.call('HEXISTS', KEYS[3], ref) == 1 and 'exists'
    end
  end
end

local GONE = redis.call('EXISTS', base .. 'gone') == 1
if GONE then
  for i = 1, n do refs[i] = names[i] .. ':' .. ids[i] end
  ends = redis.call('ZMSCORE', base .. 'gone', unpack(refs, 1, n))
end

-- 2. What stands against storing a task: one that is live or known to have ended, by its rule; and the limits of its agent.
local records = {}
local function record_of(i)
  if records[i] == nil then records[i] = recorded(names[i], finished[i], ids[i]) or false end
  return records[i]
end

local function known_finished(i)
  local record = record_of(i)
  return record and ended_at(record) > now - retention or end_of(ends[i], retention)
end

local KEEP = { name = RULE_KEEP, state = '' }
local function rule_of(text)
  local name, state, version, group = struct.unpack('>c1I4c0I4c0I4c0', text)
  return { name = name, state = state, version = version, group = group }
end

-- verdict is nil if nothing stands against storing a task, or if a live one is to be replaced.
local taken = {} -- what this call replaces: another call that was joined to it has to look again
local function verdict(i, rule, live)
  if rule.name == RULE_REPLACE then
    local ref, version = names[i] .. ':' .. ids[i], ''
    if taken[ref] then return CHANGED end
    if live then version = redis.sha1hex(sub(live, 8) .. '\0' .. sub(redis.call('HGET', base .. 'state', ref) or '', 2)) end
    if version ~= rule.version then return CHANGED end
    local order = live and redis.call('HGET', base .. 'orders', ref)
    local cancelled = order and byte(order) == byte(ORDER_CANCEL)
    return cancelled and where(names[i], ids[i], live, byte(values[i]) == byte(INLINE)) == IS_RUNNING and ENDING or nil
  end
  local exists = live or (finished[i] or ends[i]) and known_finished(i)
  if exists then return rule.name == RULE_REFUSE and REFUSED or EXISTS end
end

-- heavier says whether an agent would have too many bytes with a task, whose old definition goes if it is replaced; else it
-- has them. What is small costs nothing here.
local hefts = {} -- KiB of agents
local function heavier(agent, value, record, live)
  local kib = mode == CHECK and tonumber(record) or heft(record, 0)
  local was = live and heft(live, 7) or 0
  if kib == 0 and was == 0 then return false end
  local have = hefts[agent]
  if not have then
    local inlined = value and byte(value) == byte(INLINE)
    have = value and (inlined and heft(value, 8) or tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)) or 0
  end
  hefts[agent] = have
  if kib > was and have + kib - was > heaviest then return true end
  hefts[agent] = have + kib - was
  return false
end

local dirty, dues, state_sets, again, replaced = {}, {}, {}, {}, {}
local reply, created, groups, earliest, refused = { now }, 0, {}, nil, false
for i = 1, n do reply[i + 1] = EXISTS end
local clock = mode == CHECK and 0 or ticks(n)

-- 3. A new task: inline while it is the only one of its agent and not large, else in a queue, as is then what was inline.
local function create(i, rule, agent, id, kind, group, value, shape, due, record)
  local live = struct.pack('>I7', clock + i - 1) .. record
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
  more(more_live, kind, 1)
  created = created + 1
  if group ~= '' then
    groups[group] = (groups[group] or 0) + 1
    enroll(agent, live, id, group)
  end
  return due
end

-- 4. A live task that is replaced keeps its sequence number and its place. It is taken out of where it is only once it is clear
-- that nothing is refused; one that runs becomes what replaces it when its run ends.
local function replace(i, rule, agent, id, kind, group, value, shape, due, record, live)
  local single = values[i] and byte(values[i]) == byte(INLINE)
  local place_, _, name = where(agent, id, live, single)
  local runs, ref = place_ == IS_RUNNING, agent .. ':' .. id
  taken[ref] = true
  replaced[#replaced + 1] = {
    agent = agent, id = id, ref = ref, live = live, single = single, place = place_, name = name,
    kind = kind, group = group, due = due, rule = rule,
  }
  local new = sub(live, 1, 7) .. record
  if shape == byte(INLINE) and heft(new, 7) == 0 then
    current[agent] = INLINE .. new
  else
    if shape == byte(INLINE) then -- it is held inline no more
      current[agent] = grown(NEW, tonumber(sub(new, 8, 8)), 1)
    else
      current[agent] = grown(value, tonumber(sub(new, 8, 8)), 0)
      if #live >= LARGE_BODY then heft_adds[agent] = (heft_adds[agent] or 0) - heft(live, 7) end
    end
    shape = byte(QUEUED)
    stored[ref] = new
    hold(agent, new, id)
  end
  if not runs then
    place(agent, shape == byte(INLINE), new, id, due)
    if shape == byte(INLINE) then dues[agent] = due end
  end
  return runs
end

-- 5. One task: refused, found to exist, only checked, or stored.
local checked = {} -- how many tasks an agent would have, when nothing is written
local function store(i, rule)
  local at = FIELDS * (i - 1) + FIRST
  local agent, due, record, group, id, kind = unpack(ARGV, at + 1, at + 6)
  local value, live = current[agent], nil
  local shape = value and byte(value)
  if not (shape == byte(INLINE) and parse(sub(value, 2)) or shape == byte(QUEUED) and tonumber(sub(value, 2))) then shape = nil end
  local live_count = checked[agent] or not shape and 0 or shape == byte(INLINE) and 1 or tonumber(sub(value, 3))
  if shape == byte(QUEUED) then live = stored[agent .. ':' .. id] end
  if shape == byte(INLINE) and parse(sub(value, 2)) == id then live = sub(value, 2) end
  local against
  if value or GONE or finished[i] or rule ~= KEEP then against = verdict(i, rule, live) end
  if not against and not live and live_count >= most then against = OVER end
  if not against and heavier(agent, values[i], record, live) then against = HEAVY end
  if against then
    reply[i + 1] = against
    refused = refused or against < EXISTS
    return
  end
  if mode == CHECK then
    if not live then checked[agent] = live_count + 1 end
    return
  end
  due = tonumber(due)
  due = due <= 0 and now - due or math.max(due, now) -- nobody gets ahead of others by a time long past
  local runs = false
  if live then
    runs = replace(i, rule, agent, id, kind, group, value, shape, due, record, live)
    reply[i + 1] = string.format('=%.0f', due)
  else
    reply[i + 1] = create(i, rule, agent, id, kind, group, value, shape, due, record)
  end
  dirty[agent] = true
  if not runs and (not earliest or due < earliest) then earliest = due end
end

-- 6. The order of the tasks: what is replaced comes first, as it is taken out of where it is before anything is placed, also before
-- a new task makes its agent one with queues.
local later = {}
for i = 1, n do
  if byte(rules[i]) == byte(RULE_REPLACE) then
    local value, exists = values[i], nil
    if value and byte(value) == byte(INLINE) then
      exists = parse(sub(value, 2)) == ids[i]
    else
      exists = stored[names[i] .. ':' .. ids[i]]
    end
    if exists then store(i, rule_of(rules[i])) else later[#later + 1] = i end
  end
end
for _, i in ipairs(later) do store(i, rule_of(rules[i])) end
for i = 1, n do
  local rule = rules[i]
  if rule == '' then
    store(i, KEEP)
  elseif byte(rule) ~= byte(RULE_REPLACE) then
    store(i, rule_of(rule))
  end
end
if (mode == ALL_OR_NOTHING and refused) or (created == 0 and #replaced == 0) then return reply end

-- 7. What is replaced leaves its place, its group and its kind.
for _, r in ipairs(replaced) do
  local agent, id, ref, live = r.agent, r.id, r.ref, r.live
  local _, kind = parse(live)
  if dozing(redis.call('HGET', base .. 'pulse', ref)) then rested(kind, -1) end
  redis.call('HDEL', base .. 'pulse', ref)
  more(more_live, kind, -1)
  more(more_live, r.kind, 1)
  local group = group_of(agent, id, live, r.rule.group)
  if group ~= r.group then
    if group ~= '' then leave(group, 1, retention) end
    if r.group ~= '' then join(r.group, 1) end
    enroll(agent, live, id, r.group)
  end
  if r.place == IS_RUNNING then
    more(more_running, kind, -1)
    more(more_running, r.kind, 1)
    redis.call('HSET', base .. 'orders', ref, ORDER_REPLACE .. string.format('%013.0f', r.due) .. r.rule.state)
  else
    lift(agent, id, live, r.single, r.place, r.name)
    redis.call('HDEL', base .. 'orders', ref)
    if r.rule.state ~= '' then
      redis.call('HSET', base .. 'state', ref, r.rule.state)
    else
      redis.call('HDEL', base .. 'state', ref)
    end
  end
end

-- 8. What was gathered is written, each key once, and whoever sleeps is told when the first is due.
for _, i in ipairs(again) do -- the record of a task that begins anew goes
  local record = record_of(i)
  if record then unrecord(names[i], finished[i], ids[i], record) end
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
