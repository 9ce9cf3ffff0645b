-- submit: store new tasks; what becomes of one whose id is live, or finished within the retention, it says itself.
-- needs: known answers profiled quota
-- needs to replace: look holds signals finished known grouped answers profiled withdraw quota
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] finished
-- ARGV[1] mode: each (every task for itself), all (all or nothing) or check (write nothing)
-- ARGV[2] most live tasks an agent may have, KiB of large ones, and how many may be in the agenda, with a | between; behind them an o if all
--         tasks are owed: they are stored when memory is full too
-- ARGV[3] retention of finished records, ms
-- ARGV[4] how each task counts for the quota of its agent: 1 if it recurs, 2 if it is bound, 3 if both, else 0; behind them, if there are any, the marks(16) of
--         the quotas that they were checked by; '' if none counts
-- ARGV[5..] 7 for each task: agent, due (ms, or minus a delay in ms), record (to check, what it weighs), group key or '', id, kind, rule
--           rule: '' keep what is there, else k, f (refuse), r (replace) or o (keep, whatever the limits) and, each with its length, the first state,
--           the version that is to be replaced, its group key as the caller takes it (see group_of), the root that the task counts for
--           (agent:id, or ''), how many it may have in an hour, and the hold that a new task has from the beginning, or '': when it
--           ends, ms (13), 0 for never, then who and why
-- returns {now, for each task: its due time, '=' and its due time if it was replaced, 0 (exists, or would be stored),
--          -1 (over the limit), -4 (of bytes), -2 (refused), -3 (changed), -5 (it runs, and was cancelled), '~' and when its root has room again, or what a quota
--          says (see quota), then {agent, profile of each that has one} if the partition has any}

local mode, retention = ARGV[1], tonumber(ARGV[3])
local most, heaviest, few = string.match(ARGV[2], '^(%d+)|(%d+)|(%d+)o?$')
most, heaviest, few = tonumber(most), tonumber(heaviest), tonumber(few)
local FIELDS = 7 -- of each task
local FIRST = 4 -- arguments in front of the tasks
-- The answers.
local EXISTS = 0
local OVER = -1
local REFUSED = -2
local CHANGED = -3
local HEAVY = -4
local ENDING = -5
local FULL = '~' -- in front of when the root has room again
-- Tasks of a root are counted in spans, each of which is forgotten an hour after its end: breaker.Span, breaker.Window.
local SPAN = 300000
local HOUR = 3600000
-- The letters of rules, and the modes.
local RULE_KEEP = 'k'
local RULE_REFUSE = 'f'
local RULE_REPLACE = 'r'
local RULE_OWED = 'o'
local ALL_OR_NOTHING = 'all'
local CHECK = 'check'

-- 1. What is known of the tasks: the values of their agents, those of their ids that are live, and the records of their agents.
-- Each key is read once for all tasks.
local n = (#ARGV - FIRST) / FIELDS
local names, ids, rules, refs = {}, {}, {}, {}
for i = 1, n do
  local at = FIELDS * (i - 1) + FIRST
  names[i], ids[i], rules[i] = ARGV[at + 1], ARGV[at + 5], ARGV[at + 7]
end
-- guard: full-owed
if sub(ARGV[2], -1) == RULE_OWED then redis.call('ZREM', base .. 'leases', '') end -- the first write must be one that is allowed when memory is full
local values = redis.call('HMGET', KEYS[2], unpack(names))
local finished = redis.call('HMGET', KEYS[4], unpack(names))
local current, stored, ends = {}, {}, {}
for i = 1, n do
  local value = values[i]
  current[names[i]] = value
  if value and byte(value) ~= byte(INLINE) then refs[#refs + 1] = names[i] .. ':' .. ids[i] end
end
-- rule: id-is-live
if #refs > 0 and redis.call('EXISTS', base .. 'bytes') == 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do stored[refs[i]] = live end
elseif #refs > 0 then -- what may be large is read only if it is to be replaced; of others it matters that they exist
  for i = 1, n do
    local ref, several = names[i] .. ':' .. ids[i], values[i] and byte(values[i]) ~= byte(INLINE)
    if several and byte(rules[i]) == byte(RULE_REPLACE) then
      stored[ref] = redis.call('HGET', KEYS[3], ref)
    elseif several and stored[ref] == nil then
      stored[ref] = redis.call('HEXISTS', KEYS[3], ref) == 1 and 'exists'
    end
  end
end

local GONE, TENANTS = redis.call('EXISTS', base .. 'gone') == 1, redis.call('EXISTS', base .. 'profiles', base .. 'quotas')
-- rule: quotas
if TENANTS == 2 then quota.read(names) end
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

-- finished_at is when a task ended that is known to have: what is to replace it has to have seen that; nil for none.
local function finished_at(i)
  local record = (finished[i] or ends[i]) and record_of(i)
  if not record or ended_at(record) <= now - retention then record = ends[i] and end_of(ends[i], retention) end
  return record and ended_at(record)
end

local KEEP = { name = RULE_KEEP, state = '', root = '', hold = '' }
local function rule_of(text)
  local name, state, version, group, root, room, hold = struct.unpack('>c1I4c0I4c0I4c0I4c0I4c0I4c0', text)
  return { name = name, state = state, version = version, group = group, root = root, room = tonumber(room), hold = hold }
end

-- waits_as is the member of a live task in the agenda; false if it waits in a queue.
local function waits_as(agent, value, live, id)
  local form = byte(value)
  if form == byte(INLINE) or form == byte(FEW) and parse((first_of(value))) == id then return agent end
  return member_of(agent, value, live, id)
end

-- verdict is nil if nothing stands against storing a task, or if a live one is to be replaced.
local taken = {} -- what this call replaces: another call that was joined to it has to look again
local function verdict(i, rule, live)
  if rule.name == RULE_REPLACE then
    local ref, version = names[i] .. ':' .. ids[i], ''
    if taken[ref] then return CHANGED end
    local ended = not live and finished_at(i)
    if live then version = redis.sha1hex(sub(live, 8) .. '\0' .. state_.opaque(redis.call('HGET', base .. 'state', ref) or '')) end
    if ended then version = string.format('%.0f', ended) end
    if version ~= rule.version then return CHANGED end
    local order = live and redis.call('HGET', base .. 'orders', ref)
    local cancelled = order and byte(order) == byte(ORDER_CANCEL)
    return cancelled and where(names[i], ids[i], live, waits_as(names[i], values[i], live, ids[i])) == IS_RUNNING and ENDING or nil
  end
  local exists = live or finished_at(i)
  if exists then return rule.name == RULE_REFUSE and REFUSED or EXISTS end
end

-- What was stored for roots within an hour, with what this call adds: by root, and by span.
local roots = {}
local function root_of(name)
  local r = roots[name]
  if r then return r end
  r = { have = 0, fresh = 0, spans = {}, over = {} }
  roots[name] = r
  local all = redis.call('HGETALL', base .. 'spawned:' .. name)
  for k = 1, #all, 2 do
    local span, stored_ = tonumber(all[k]), tonumber(all[k + 1])
    if (span + 1) * SPAN + HOUR > now then
      r.have = r.have + stored_
      r.spans[#r.spans + 1] = { span, stored_ }
    else
      r.over[#r.over + 1] = all[k]
    end
  end
  table.sort(r.spans, function(a, b) return a[1] < b[1] end)
  return r
end

-- full is the answer for a task whose root has no room for it; nil if it has.
local THIS_SPAN = math.floor(now / SPAN)
local function full(rule)
  if rule.root == '' then return end
  local r = root_of(rule.root)
  local have = r.have + r.fresh
  -- guard: breaker-number-on-redis
  if have < rule.room then return nil end
  local at = THIS_SPAN
  for _, s in ipairs(r.spans) do
    have = have - s[2]
    if s[1] == THIS_SPAN then have = have - r.fresh end
    if have < rule.room then at = s[1] break end
  end
  return FULL .. string.format('%.0f', (at + 1) * SPAN + HOUR)
end

-- heavier is the answer if an agent would have too many bytes with a task, whose old definition goes if it is replaced; else it
-- has them. What is small costs nothing here.
local hefts = {} -- KiB of agents
local function heavier(agent, value, record, live, owed, flag)
  local kib = mode == CHECK and tonumber(record) or heft(record, 0)
  local was = live and heft(live, 7) or 0
  if kib == 0 and was == 0 then return nil end
  local have = hefts[agent]
  if not have then
    local inlined = value and byte(value) == byte(INLINE)
    have = value and (inlined and heft(value, 8) or tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)) or 0
  end
  hefts[agent] = have
  if kib > was and not owed and have + kib - was > heaviest then return HEAVY end
  local against = quota.of[agent] and quota.too_heavy(quota.of[agent], flag, have, kib - was)
  if not against then hefts[agent] = have + kib - was end
  return against
end

local dirty, state_sets, again, replaced = {}, {}, {}, {}
local reply, created, groups, earliest, refused = { now }, 0, {}, nil, false
for i = 1, n do reply[i + 1] = EXISTS end
local clock = mode == CHECK and 0 or ticks(n)

-- hold lets no claim take a new task, not even one between this step and the next.
local holds_, terms = {}, {}
local function hold(agent, id, held)
  local scope, till = SCOPE_TASK .. agent .. ':' .. id, tonumber(sub(held, 1, 13))
  holds_[#holds_ + 1] = scope
  holds_[#holds_ + 1] = sub(held, 1, 13) .. string.format('%013.0f', now) .. sub(held, 14)
  if till > 0 then
    terms[#terms + 1] = till
    terms[#terms + 1] = HELD .. scope
    if not earliest or till < earliest then earliest = till end -- whoever sleeps ends it in time
  end
end

-- 3. A new task: inline while it is the only one of its agent and not large, else in a queue, as is then what was inline.
local function create(i, rule, agent, id, kind, group, value, shape, due, record)
  local live = struct.pack('>I7', clock + i - 1) .. record
  if finished[i] then again[#again + 1] = i end
  local inline_ = shape == byte(INLINE) and sub(value, 2) or shape == byte(FEW) and first_of(value)
  local first, member = inline_ and parse(inline_), nil
  current[agent], member = added(agent, shape and value, live, id, few)
  if member ~= agent then stored[agent .. ':' .. id] = live end
  if first and byte(current[agent]) == byte(QUEUED) then stored[agent .. ':' .. first] = inline_ end
  place(agent, member, live, id, due)
  if rule.state ~= '' then
    state_sets[#state_sets + 1] = agent .. ':' .. id
    state_sets[#state_sets + 1] = rule.state
  end
  if rule.hold ~= '' then hold(agent, id, rule.hold) end
  more(more_live, kind, 1)
  created = created + 1
  if group ~= '' then
    groups[group] = (groups[group] or 0) + 1
    enroll(agent, live, id, group)
  end
  return due
end

-- unplace takes a waiting task out of the queue that it was given in this call, as an earlier one has given its agent queues; in_agenda says
-- that the agent was put in the agenda for it.
local function unplace(agent, live, id, in_agenda)
  local key, entry, due = base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent, sub(live, 1, 7) .. id, nil
  local q = queue_adds[key] or {}
  for k = #q - 1, 1, -2 do
    if q[k + 1] == entry then
      due = q[k]
      table.remove(q, k + 1)
      table.remove(q, k)
    end
  end
  if #q == 0 then queue_adds[key] = nil end
  for k = #agenda_adds - 1, 1, -2 do
    if in_agenda and agenda_adds[k + 1] == agent and agenda_adds[k] == due then
      table.remove(agenda_adds, k + 1)
      table.remove(agenda_adds, k)
      return
    end
  end
end

-- 4. A live task that is replaced keeps its sequence number and its place. It is taken out of where it is only once it is clear
-- that nothing is refused; one that runs becomes what replaces it when its run ends.
local function replace(i, rule, agent, id, kind, group, value, shape, due, record, live)
  local was = waits_as(agent, values[i], live, id)
  local place_, _, name = where(agent, id, live, was)
  local runs, ref = place_ == IS_RUNNING, agent .. ':' .. id
  taken[ref] = true
  replaced[#replaced + 1] = {
    agent = agent, id = id, ref = ref, live = live, member = was, place = place_, name = name,
    kind = kind, group = group, due = due, rule = rule,
  }
  local new = sub(live, 1, 7) .. record
  if was and shape == byte(QUEUED) then unplace(agent, live, id, was ~= agent) end
  local inline_ = shape == byte(FEW) and first_of(value)
  local first, member = inline_ and parse(inline_), nil
  current[agent], member = rewritten(agent, value, live, new, id, waits_as(agent, value, live, id))
  if member ~= agent then stored[ref] = new end
  if first and first ~= id and byte(current[agent]) == byte(QUEUED) then stored[agent .. ':' .. first] = inline_ end
  if not runs then place(agent, member, new, id, due) end
  return runs
end

-- 5. One task: refused, found to exist, only checked, or stored.
local checked = {} -- how many tasks an agent would have, when nothing is written
local function store(i, rule)
  local at = FIELDS * (i - 1) + FIRST
  local agent, due, record, group, id, kind = unpack(ARGV, at + 1, at + 6)
  local value, live = current[agent], nil
  local shape = value and byte(value)
  if count_of(value) == 0 then shape = nil end -- not what we wrote
  local live_count = checked[agent] or shape and count_of(value) or 0
  if shape and shape ~= byte(INLINE) then live = stored[agent .. ':' .. id] end
  local inline_ = shape == byte(INLINE) and sub(value, 2) or shape == byte(FEW) and first_of(value)
  if inline_ and parse(inline_) == id then live = inline_ end
  local against
  if value or GONE or finished[i] or rule ~= KEEP then against = verdict(i, rule, live) end
  -- guard: callback-owed-on-redis
  -- rule: most-live-tasks
  if not against and not live and live_count >= most and rule.name ~= RULE_OWED then against = OVER end
  local own, flag = quota.of[agent], nil
  if own then
    flag = sub(ARGV[4], i, i)
    local mark = #ARGV[4] > n and sub(ARGV[4], n + 16 * i - 15, n + 16 * i) or ''
    against = against or quota.refuses(own, id, flag, mark, live_count, not live)
  end
  if not against then against = full(rule) end
  if not against then against = heavier(agent, values[i], record, live, rule.name == RULE_OWED, flag) end
  if against then
    reply[i + 1] = against
    refused = refused or against ~= EXISTS
    return
  end
  if rule.root ~= '' then
    local r = root_of(rule.root)
    r.fresh = r.fresh + 1
  end
  if own then quota.stored(own, id, flag) end
  if mode == CHECK then
    if not live then checked[agent] = live_count + 1 end
    return
  end
  due = tonumber(due)
  -- rule: not-before-now
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
    local inline_ = value and (byte(value) == byte(INLINE) and sub(value, 2) or byte(value) == byte(FEW) and first_of(value))
    exists = inline_ and parse(inline_) == ids[i] or stored[names[i] .. ':' .. ids[i]]
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
    withdraw()
    redis.call('HSET', base .. 'orders', ref, ORDER_REPLACE .. string.format('%013.0f', r.due) .. r.rule.state)
    state_.touch(ref)
  else
    lift(agent, id, live, r.member, r.place, r.name)
    redis.call('HDEL', base .. 'orders', ref)
    redis.call('HDEL', base .. 'suspects', ref)
    unwait(agent, id)
    redis.call('HSET', base .. 'state', ref, state_.of_now(r.rule.state ~= '' and r.rule.state or '\0'))
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
for name, r in pairs(roots) do
  if r.fresh > 0 then
    local key = base .. 'spawned:' .. name
    redis.call('HINCRBY', key, THIS_SPAN, r.fresh)
    if #r.over > 0 then redis.call('HDEL', key, unpack(r.over)) end
    redis.call('PEXPIRE', key, HOUR + SPAN) -- by then nothing in it counts
  end
end
quota.write()
if #holds_ > 0 then redis.call('HSET', base .. 'holds', unpack(holds_)) end
if #terms > 0 then redis.call('ZADD', base .. 'leases', unpack(terms)) end
placed()
for group, k in pairs(groups) do join(group, k) end
count('submitted', created)
count('live', created)
counted()
if earliest then announce(earliest) end
local profiles = TENANTS > 0 and profiles_of(names, 1, true)
if profiles then reply[n + 2] = profiles end
return kept_answer(reply)
