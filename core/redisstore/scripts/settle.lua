-- settle: end runs. A run that no longer holds its task changes nothing; one that is settled already is settled.
-- needs: look finished grouped
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] state
-- KEYS[5] claims
-- KEYS[6] leases
-- KEYS[7] finished
-- ARGV[1] retention of finished records, ms
-- ARGV[2] most finished records of an agent, of those that failed and of the others, and KiB of large ones, with a | between
-- ARGV[3..] 12 for each run: fence, index in its claim, agent, id, verb, due, state or '', record, group key or '', kind,
--           what the run adds to the statistics of its kind or '', extra or ''
--           verb: c completed, f failed, x cancelled (record is kept); r again at due (ms, or minus a delay in ms);
--           z rest until due; b given back, due is the one it had; the group is what the caller takes for it: see group_of
--           statistics: type of the schedule(1) failed(1) duration(6) lag(6); extra, each with its length: 1 if it knows
--           that the task was replaced, hold or '', floor|reason|delay|longest or '', failure
-- returns {now, for each run: 0 when its lease is lost, -1 when its task was replaced, 'x' and what was said when it is
--          to be cancelled, else 1 or the new due time}

local retention, most = tonumber(ARGV[1]), ARGV[2]
local n = (#ARGV - 2) / 12
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full

local fences, names, marks, values = {}, {}, {}, {}
for i = 1, n do
  fences[i] = ARGV[12 * i - 9]
  names[i] = ARGV[12 * i - 7]
end
for i, m in ipairs(redis.call('HMGET', KEYS[5], unpack(fences))) do marks[fences[i]] = m end
local lives, refs = {}, {}
for i, v in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  values[names[i]] = v
  if v and byte(v) == byte(QUEUED) then refs[#refs + 1] = names[i] .. ':' .. ARGV[12 * i - 6] end
end
if #refs > 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(refs))) do lives[refs[i]] = live end
end
recall(names)
local orders = {}
if redis.call('EXISTS', base .. 'orders') == 1 then
  for i = 1, n do refs[i] = names[i] .. ':' .. ARGV[12 * i - 6] end
  for i, order in ipairs(redis.call('HMGET', base .. 'orders', unpack(refs, 1, n))) do orders[refs[i]] = order or nil end
end

local task_dels, gone, gone_kinds, state_sets, order_dels = {}, {}, {}, {}, {}
local changed, stats, freed = {}, {}, {}
local counts = { c = 0, f = 0, x = 0, r = 0, b = 0, z = 0 }
local groups, earliest, touched, ended = {}, nil, {}, 0

local GROUPS = redis.call('EXISTS', base .. 'groups') == 1
local function finish(i, verb, agent, id, live, single, kind)
  local ref = agent .. ':' .. id
  if single then
    values[agent] = false
  else
    task_dels[#task_dels + 1] = ref
    local left = (tonumber(sub(values[agent], 3)) or 1) - 1
    values[agent] = left > 0 and sub(values[agent], 1, 2) .. left
    if #(lives[ref] or '') >= LARGE_BODY then weigh(agent, -heft(lives[ref], 7)) end
    if left <= 0 and redis.call('EXISTS', base .. 'bytes') == 1 then redis.call('HDEL', base .. 'bytes', agent) end
  end
  changed[agent] = true
  gone[#gone + 1] = ref
  gone_kinds[#gone_kinds + 1] = kind
  more(more_live, kind, -1)
  remember(agent, id, verb .. string.format('%013.0f', now) .. ARGV[12 * i - 2], retention)
  local group = ARGV[12 * i - 1]
  if GROUPS or group ~= '' then group = group_of(agent, id, live, group) end
  if group ~= '' then
    groups[group] = groups[group] or { live = 0, c = 0, f = 0, x = 0 }
    groups[group].live = groups[group].live + 1
    groups[group][verb] = groups[group][verb] + 1
  end
  return 1
end

-- pulsed is when an activity task is due after a run, and keeps what is known until then.
local function pulsed(ref, kind, verb, floor, due)
  local pulse = redis.call('HGET', base .. 'pulse', ref)
  if not pulse then return due end
  if dozing(pulse) then rested(kind, -1) end
  local from, to = string.match(pulse, '|(%d*)|(%d*)$')
  local at, reason, delay, longest = string.match(floor, '^(%d*)|([^|]*)|(%d*)|(%d*)$')
  from, to, at = tonumber(from), tonumber(to), tonumber(at)
  local first = from
  if verb == REST and from > 0 then
    due = from + tonumber(delay)
    if longest ~= '' then due = math.min(to + tonumber(delay), from + tonumber(longest)) end
    due = math.max(due, at, now)
  elseif verb ~= REST and from == 0 then
    first = now
  end
  if first == 0 then rested(kind, 1) end
  redis.call('HSET', base .. 'pulse', ref, string.format('%.0f|%s|%02.0f|0|0', at, reason, first))
  return due
end

local function again(i, verb, agent, id, live, single, order)
  local ref = agent .. ':' .. id
  local due, state = tonumber(ARGV[12 * i - 4]), ARGV[12 * i - 3]
  if due <= 0 then due = now - due end
  if state ~= '' then
    if verb == RELEASE and byte(state) == 0 then -- a run that was given back has shown nothing: its crashes stay counted
      state = sub(redis.call('HGET', KEYS[4], ref) or '\0', 1, 1) .. sub(state, 2)
    end
    state_sets[#state_sets + 1] = ref
    state_sets[#state_sets + 1] = state
  end
  if ARGV[12 * i + 2] ~= '' then
    local _, held, floor = struct.unpack('>I4c0I4c0I4c0', ARGV[12 * i + 2])
    if held ~= '' then
      local scope = SCOPE_TASK .. ref
      local old = redis.call('HGET', base .. 'holds', scope)
      local since = lasting(old) and sub(old, 14, 26) or string.format('%013.0f', now)
      if not lasting(old) or sub(old, 1, 13) ~= '0000000000000' then -- else somebody's own stands
        redis.call('HSET', base .. 'holds', scope, '0000000000000' .. since .. sub(held, 2))
        redis.call('ZREM', KEYS[6], HELD .. scope)
      end
    end
    if floor ~= '' then due = pulsed(ref, select(2, parse(live)), verb, floor, due) end
  end
  local op = order and byte(order)
  if op == byte(ORDER_REPLACE) then
    due = tonumber(sub(order, 2, 14))
  elseif op == byte(ORDER_REPEAT) and verb ~= RELEASE then
    due = math.min(due, now)
    rouse(ref, live)
  end
  if op == byte(ORDER_TAKEN) and verb == RELEASE then
    redis.call('HSET', base .. 'orders', ref, ORDER_RUN)
  elseif op and not (op == byte(ORDER_REPEAT) and verb == RELEASE) then
    order_dels[#order_dels + 1] = ref
  end
  place(agent, single, live, id, due)
  if not earliest or due < earliest then earliest = due end
  return due
end

-- counted_run adds a run to the statistics of its kind.
local function counted_run(i)
  local kind = ARGV[12 * i]
  local s = stats[kind]
  if not s then
    s = { runs = 0, failures = 0, took = 0, least = math.huge, longest = 0, lag = 0, most_lag = 0, a = 0, e = 0, c = 0, t = 0 }
    stats[kind] = s
  end
  local type, failed, took, lag = struct.unpack('>c1c1I6I6', ARGV[12 * i + 1])
  s.runs, s.took, s.lag, s[type] = s.runs + 1, s.took + took, s.lag + lag, s[type] + 1
  s.least, s.longest, s.most_lag = math.min(s.least, took), math.max(s.longest, took), math.max(s.most_lag, lag)
  if failed == '1' then
    s.failures = s.failures + 1
    local _, _, _, failure = struct.unpack('>I4c0I4c0I4c0I4c0', ARGV[12 * i + 2])
    redis.call('LPUSH', base .. 'failures:' .. kind, string.format('%013.0f', now) .. failure)
    redis.call('LTRIM', base .. 'failures:' .. kind, 0, 19)
  end
end

-- stands says whether a settlement takes an order for its task into account; else it returns what to answer.
local function stands(i, verb, order)
  if byte(order) == byte(ORDER_CANCEL) and verb ~= CANCELLED then return false, order end
  if byte(order) == byte(ORDER_REPLACE) and sub(ARGV[12 * i + 2], 1, 5) ~= '\0\0\0\1\49' then return false, -1 end
  return true
end

local reply = { now }
for i = 1, n do
  local fence, index, agent, id = fences[i], tonumber(ARGV[12 * i - 8]) + 1, names[i], ARGV[12 * i - 6]
  local verb, mark = ARGV[12 * i - 5], marks[fence] and index <= #marks[fence] - 16 and byte(marks[fence], index)
  reply[i + 1] = mark == byte(SETTLED) and 1 or 0
  if mark == byte(RUNNING) then
    local ref = agent .. ':' .. id
    local live, single = lives[ref], false
    if not live then live, single = find(agent, values[agent], id) end
    local order, fits, instead = orders[ref], true, nil
    if order then fits, instead = stands(i, verb, order) end
    if not fits then
      reply[i + 1] = instead
    else
      if live then
        local kind = ARGV[12 * i]
        if order then kind = select(2, parse(live)) end -- it may have been replaced, and then told to end
        if verb == AGAIN or verb == RELEASE or verb == REST then
          reply[i + 1] = again(i, verb, agent, id, live, single, order)
        else
          reply[i + 1] = finish(i, verb, agent, id, live, single, kind)
        end
        counts[verb] = counts[verb] + 1
        more(more_running, kind, -1)
        if ARGV[12 * i + 1] ~= '' then counted_run(i) end
      end
      orders[ref] = nil
      marks[fence] = sub(marks[fence], 1, index - 1) .. SETTLED .. sub(marks[fence], index + 1)
      touched[fence], freed[i] = true, true
      ended = ended + 1
    end
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
if #gone > 0 then forget(gone, gone_kinds) end
if #state_sets > 0 then redis.call('HSET', KEYS[4], unpack(state_sets)) end
if #order_dels > 0 then redis.call('HDEL', base .. 'orders', unpack(order_dels)) end
placed()
if redis.call('EXISTS', base .. 'serial') == 1 then
  for i = 1, n do
    if freed[i] then free(names[i], fences[i]) end
  end
end
remembered(most, retention)
for group, c in pairs(groups) do
  leave(group, c.live, retention)
  for verb, field in pairs({ c = 'completed', f = 'failed', x = 'cancelled' }) do
    if c[verb] > 0 then redis.call('HINCRBY', base .. 'group:' .. group, field, c[verb]) end
  end
end
for kind, s in pairs(stats) do
  local old = redis.call('HGET', base .. 'kinds', COUNT_RUNS .. kind)
  local o, right = tally_of(old)
  if old and not right then count('malformed', 1) end
  redis.call('HSET', base .. 'kinds', COUNT_RUNS .. kind, cmsgpack.pack({
    o[1] + s.runs, o[2] + s.failures, o[3] + s.took, math.min(o[4], s.least), math.max(o[5], s.longest),
    o[6] + s.lag, math.max(o[7], s.most_lag), o[8] + s.a, o[9] + s.e, o[10] + s.c, o[11] + s.t,
  }))
end
local closed = false
for fence in pairs(touched) do
  local value = marks[fence]
  if string.find(sub(value, 1, -17), RUNNING, 1, true) then
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
count('again', counts.r + counts.z)
count('released', counts.b)
counted()
if earliest then announce(earliest) end
if closed then look() end
return reply
