-- settle: end runs. A run that no longer holds its task changes nothing; one that is settled already is settled.
-- needs: look ended counting bounded spend signals finished grouped
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] state
-- KEYS[5] claims
-- KEYS[6] leases
-- KEYS[7] finished
-- ARGV[1] retention of finished records, ms
-- ARGV[2] most finished records of an agent, of those that failed and of the others, and KiB of large ones, with a | between
-- ARGV[3] 1 if the caller takes what is due again, and nobody has to be woken for it
-- ARGV[4..] 12 for each run: fence, index in its claim, agent, id, verb, due, state or '', record, group key or '', kind,
--           what the run adds to the statistics of its kind or '', extra or ''
--           a state has in front a 0, or a 1 if the crashes of its task stay counted
--           verb: c completed, f failed, x cancelled (record is kept); r again at due (ms, or minus a delay in ms);
--           z rest until due; b given back, due is the one it had; the group is what the caller takes for it: see group_of
--           statistics: type of the schedule(1) failed(1) duration(6) lag(6); extra, each with its length: 1 if it knows
--           that the task was replaced, hold or '', floor|reason|delay|longest or '', failure, unit=amount and so on,
--           how it was answered: see after_run, 1 if it waits for its signal no more, the key of the next one or '', and the mark of that wait
-- returns {now, for each run: 0 when its lease is lost, -1 when its task was replaced, 'x' and what was said when it is
--          to be cancelled, else 1 or the new due time, behind a + if others wait for what it had; then, if there are any,
--          {which run it was, bucket, end of its period of each budget that is used up by now}, and what the homes of buckets that span
--          partitions are to be told: see after_run}

local FIELDS = 12 -- of each run
local FIRST = 3 -- arguments in front of the runs
local REPLACED = -1 -- the answer for a run whose task was replaced
local FREED = '+' -- in front of the answer for a run for whose place others wait: under a limit, or of its agent
local FAILURES_KEPT = 20 -- of a kind

-- 1. What is known of the runs: the marks of their claims, the values of their agents, the tasks of agents with queues, the
-- records of those that ended before, and the orders for their tasks. Each key is read once for all runs.
local retention, most = tonumber(ARGV[1]), ARGV[2]
local n = (#ARGV - FIRST) / FIELDS
-- guard: out-of-memory
-- rule: first-write
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full

local fences, names, refs = {}, {}, {}
for i = 1, n do
  local at = FIELDS * (i - 1) + FIRST
  fences[i], names[i] = ARGV[at + 1], ARGV[at + 3]
  refs[i] = names[i] .. ':' .. ARGV[at + 4]
end
local marks, values, lives, queued = {}, {}, {}, {}
for i, m in ipairs(redis.call('HMGET', KEYS[5], unpack(fences))) do marks[fences[i]] = m end
for i, v in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  values[names[i]] = v
  if v and byte(v) ~= byte(INLINE) then queued[#queued + 1] = refs[i] end
end
if #queued > 0 then
  for i, live in ipairs(redis.call('HMGET', KEYS[3], unpack(queued))) do lives[queued[i]] = live end
end
recall(names)
local orders = {}
if redis.call('EXISTS', base .. 'orders') == 1 then
  for i, order in ipairs(redis.call('HMGET', base .. 'orders', unpack(refs))) do orders[refs[i]] = order or nil end
end
local groups_ = redis.call('EXISTS', base .. 'groups', base .. 'groups', base .. 'watched')
local GROUPS = groups_ > 1 -- else no task has a group that its caller does not name

-- What is to be written is gathered by key.
local task_dels, gone, gone_kinds, state_sets, order_dels = {}, {}, {}, {}, {}
local changed, stats, freed = {}, {}, {}
local counts = { [COMPLETED] = 0, [FAILED] = 0, [CANCELLED] = 0, [AGAIN] = 0, [RELEASE] = 0, [REST] = 0 }
local groups, earliest, touched, ended = {}, nil, {}, 0
local cleared = {} -- tasks of which a run has ended, so that nobody suspects them

-- 2. A task that has ended leaves its agent and becomes a record.
local function finish(verb, agent, id, ref, live, member, kind, record, group)
  values[agent] = removed(agent, values[agent], id, live)
  if member ~= agent then
    task_dels[#task_dels + 1] = ref
    if #(lives[ref] or '') >= LARGE_BODY then weigh(agent, -heft(lives[ref], 7)) end
    if not values[agent] and redis.call('EXISTS', base .. 'bytes') == 1 then redis.call('HDEL', base .. 'bytes', agent) end
  end
  changed[agent] = true
  gone[#gone + 1] = ref
  gone_kinds[#gone_kinds + 1] = kind
  more(more_live, kind, -1)
  remember(agent, id, verb .. string.format('%013.0f', now) .. record, retention)
  if GROUPS or group ~= '' then group = group_of(agent, id, live, group) end
  if group ~= '' then
    groups[group] = groups[group] or { live = 0, [COMPLETED] = 0, [FAILED] = 0, [CANCELLED] = 0 }
    groups[group].live = groups[group].live + 1
    -- guard: group-on-redis
    groups[group][verb] = groups[group][verb] + 1
  end
  return 1
end

-- 3. What some settlements of a task that has not ended bring with them: when activity makes it due.
-- pulsed is when an activity task is due after a run, and keeps what is known until then.
local function pulsed(ref, kind, verb, floor, due)
  local pulse = redis.call('HGET', base .. 'pulse', ref)
  if not pulse then return due end
  if dozing(pulse) then rested(kind, -1) end
  local from, to = string.match(pulse, '^%d*|[^|]*|%d*|(%d*)|(%d*)')
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
  redis.call('HSET', base .. 'pulse', ref, string.format('%.0f|%s|%02.0f|0|0%s', at, reason, first, string.match(pulse, '^%d*|[^|]*|%d*|%d*|%d*(.*)$')))
  return due
end

-- 4. A task that has not ended is due again, as its settlement says, or as an order says that came meanwhile.
local function again(verb, agent, id, ref, live, member, order, due, state, extra)
  due = tonumber(due)
  -- rule: due-again
  if due <= 0 then due = now - due end
  local whole = state ~= '' and verb == AGAIN and byte(state) == 0
  if state ~= '' then
    local unrun = verb == RELEASE or byte(state) == 1 -- such a run has shown nothing: its crashes stay counted
    if unrun then
      state = sub(redis.call('HGET', KEYS[4], ref) or '\0', 1, 1) .. sub(state, 2)
    end
    if not unrun then cleared[#cleared + 1] = ref end
  else
    state = redis.call('HGET', KEYS[4], ref) or '\0'
  end
  state_sets[#state_sets + 1] = ref
  state_sets[#state_sets + 1] = whole and state or state_.of_now(state) -- as plainsettle
  local await, wait = '', ''
  if extra ~= '' then
    local _, hold, floor, _, _, _, heard, key, wait_ = struct.unpack('>I4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0', extra)
    if heard ~= '' then unwait(agent, id) end
    await, wait = key, wait_
    if hold ~= '' then hold_now(SCOPE_TASK .. ref, sub(hold, 2)) end
    if floor ~= '' then due = pulsed(ref, select(2, parse(live)), verb, floor, due) end
  end
  local op = order and byte(order)
  if op == byte(ORDER_REPLACE) then
    -- guard: replacement
    due = tonumber(sub(order, 2, 14))
    unwait(agent, id)
  elseif op == byte(ORDER_REPEAT) and verb ~= RELEASE then
    due = math.min(due, now)
    rouse(ref, live)
  end
  if await ~= '' and op ~= byte(ORDER_REPLACE) and wait_for(agent, id, await, wait) then due = math.min(due, now) end
  -- An order to run, or to run once more, outlives a run that has not begun.
  if op == byte(ORDER_TAKEN) and verb == RELEASE then
    redis.call('HSET', base .. 'orders', ref, ORDER_RUN)
  elseif op and not (op == byte(ORDER_REPEAT) and verb == RELEASE) then
    order_dels[#order_dels + 1] = ref
  end
  place(agent, member, live, id, due)
  if not earliest or due < earliest then earliest = due end
  return due
end

-- 5. The statistics of its kind get what the run adds.
-- rule: statistics
local function counted_run(kind, tally, extra)
  local s = stats[kind]
  if not s then
    s = { runs = 0, failures = 0, took = 0, least = math.huge, longest = 0, lag = 0, most_lag = 0, a = 0, e = 0, c = 0, t = 0 }
    stats[kind] = s
  end
  local type, failed, took, lag = struct.unpack('>c1c1I6I6', tally)
  s.runs, s.took, s.lag, s[type] = s.runs + 1, s.took + took, s.lag + lag, s[type] + 1
  s.least, s.longest, s.most_lag = math.min(s.least, took), math.max(s.longest, took), math.max(s.most_lag, lag)
  if failed == '1' then
    s.failures = s.failures + 1
    local _, _, _, failure = struct.unpack('>I4c0I4c0I4c0I4c0', extra)
    redis.call('LPUSH', base .. 'failures:' .. kind, string.format('%013.0f', now) .. failure)
    -- rule: failures-kept
    redis.call('LTRIM', base .. 'failures:' .. kind, 0, FAILURES_KEPT - 1)
  end
end

-- used_of is what a run says that it has used, by its units, and how it was answered: see after_run.
local NOT_BEGUN = 'n'
local FENCES_A_MS = 1024
local function used_of(extra)
  local used, answer = {}, ''
  if extra ~= '' then
    local _, _, _, _, text, said = struct.unpack('>I4c0I4c0I4c0I4c0I4c0I4c0', extra)
    for unit, amount in string.gmatch(text, '([%w_]+)=(%d+)') do used[unit] = tonumber(amount) end
    answer = said
  end
  return used, answer
end

-- 6. Each run in turn, if it holds its task still.
-- stands says whether a settlement takes an order for its task into account; else it returns what to answer.
-- rule: orders
local function stands(verb, order, extra)
  if byte(order) == byte(ORDER_CANCEL) and verb ~= CANCELLED then return false, order end
  if byte(order) == byte(ORDER_REPLACE) and sub(extra, 1, 5) ~= '\0\0\0\1\49' then return false, REPLACED end
  return true
end

local reply, wanted, crossed = { groups_ % 2 == 1 and -now or now }, {}, {} -- whether a claim is worth it, by run; budgets that are used up by now
for i = 1, n do
  local at = FIELDS * (i - 1) + FIRST
  local fence, index, agent, id, verb, due, state, record, group, kind_ran, tally, extra = unpack(ARGV, at + 1, at + FIELDS)
  index = tonumber(index) + 1
  local mark = marks[fence] and index <= #marks[fence] - 16 and byte(marks[fence], index)
  reply[i + 1] = mark == byte(SETTLED) and 1 or 0
  -- rule: holds-its-task
  if mark == byte(RUNNING) then
    local ref = refs[i]
    local live, member = lives[ref], nil
    if not live then
      live, member = find(agent, values[agent], id)
    elseif values[agent] then
      member = member_of(agent, values[agent], live, id)
    end
    local order, fits, instead = orders[ref], true, nil
    if order then fits, instead = stands(verb, order, extra) end
    if not fits then
      reply[i + 1] = instead
    else
      if live then
        local kind = order and select(2, parse(live)) or kind_ran -- it may have been replaced, and then told to end
        if verb == AGAIN or verb == RELEASE or verb == REST then
          reply[i + 1] = again(verb, agent, id, ref, live, member, order, due, state, extra)
        else
          reply[i + 1] = finish(verb, agent, id, ref, live, member, kind, record, group)
        end
        counts[verb] = counts[verb] + 1
        more(more_running, kind, -1)
        local had = {}
        wanted[i] = unuse(ref, had)
        if #had > 0 then
          local used, answer = used_of(extra)
          local stays = verb == AGAIN or verb == RELEASE or verb == REST
          after_run(had, used, verb == RELEASE and '-' or answer, not stays, function(name, ends)
            crossed[#crossed + 1] = i
            crossed[#crossed + 1] = name
            crossed[#crossed + 1] = ends
          end, kind_ran, verb == RELEASE and answer == NOT_BEGUN and math.floor(tonumber(fence) / FENCES_A_MS))
        end
        if tally ~= '' then counted_run(kind_ran, tally, extra) end
      end
      orders[ref] = nil
      marks[fence] = sub(marks[fence], 1, index - 1) .. SETTLED .. sub(marks[fence], index + 1)
      touched[fence], freed[i] = true, true
      ended = ended + 1
    end
  end
end
if ended == 0 then return reply end

-- 7. What was gathered is written, each key once.
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
if #cleared > 0 then redis.call('HDEL', base .. 'suspects', unpack(cleared)) end
if #order_dels > 0 then redis.call('HDEL', base .. 'orders', unpack(order_dels)) end
placed()
if redis.call('EXISTS', base .. 'serial') == 1 then
  for i = 1, n do
    if freed[i] then wanted[i] = free(names[i], fences[i]) or wanted[i] end
  end
end
remembered(most, retention)

-- 8. Groups and kinds count what has ended.
for group, c in pairs(groups) do
  leave(group, c.live, retention)
  for verb, field in pairs({ [COMPLETED] = 'completed', [FAILED] = 'failed', [CANCELLED] = 'cancelled' }) do
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

-- 9. A claim of which nothing runs any more ends, and with it its lease.
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

-- 10. The counters, and whoever sleeps is told when the next is due.
count('running', -ended)
count('live', -(counts[COMPLETED] + counts[FAILED] + counts[CANCELLED]))
count('completed', counts[COMPLETED])
count('failed', counts[FAILED])
count('cancelled', counts[CANCELLED])
count('again', counts[AGAIN] + counts[REST])
count('released', counts[RELEASE])
counted()
if earliest then announce(earliest, ARGV[3] == '1') end
if closed or opened then look() end
if opened then wake(now) end
for i in pairs(freed) do
  if wanted[i] then reply[i + 1] = FREED .. reply[i + 1] end
end
if #crossed > 0 or #span.reports > 0 then reply[n + 2] = crossed end
if #span.reports > 0 then reply[n + 3] = span.reports end
return reply
