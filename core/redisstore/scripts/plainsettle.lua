-- plainsettle: end runs of which nothing is out of the ordinary. It changes nothing where something is, such as a lease that is lost
--        or an order for a task, and the caller sends settle instead. Straight on, as plainclaim; what a history takes that has
--        other records comes last, where only who needs it pays for it.
-- needs: ended counting plainreturn
-- then: tasks finished plainhistory
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] state
-- KEYS[5] claims
-- KEYS[6] leases
-- KEYS[7] finished
-- KEYS[8] kinds
-- KEYS[9] counters
-- KEYS[10] due
-- ARGV[1] number of runs that are due again, which come first
-- ARGV[2] how many have completed, failed and been cancelled: n|n|n
-- ARGV[3] retention of finished records, ms
-- ARGV[4] most finished records of an agent, of those that failed and of the others, and KiB of large ones, with a | between
-- ARGV[5] 1 if the caller takes what is due again, and nobody has to be woken for it, else 0; then a line for each run that says how it was answered
--         or what it has used: its place, answer, unit=amount,.. with | between: see settle
-- ARGV[6] number of claims; behind a - if a claim of the partition follows in the pipeline, which tells by itself when that is due next
-- ARGV[7] number of kinds; of several, there is a | behind it and the place of the kind of each run, a byte each
-- ARGV[8..] 2 for each claim: fence, and the index of each of its runs, a byte each; the runs are in this order
-- ARGV[..] 5 for each kind: kind, how many of its runs these are, how many of them have ended, what they add to its statistics or '',
--          and the failures of these, each behind its length
--          statistics: runs(4) failures(4) of type a, e, c and t(4 each) duration(6) shortest(6) longest(6) lag(6) longest lag(6)
-- ARGV[..] 5 for each run: agent, agent:id, its place: level(1) seq(7), then of one that is due again due (ms, or minus a delay in ms)
--          and state or '', and of one that has ended #id(2) id verb, and record
-- returns {now} if something is out of the ordinary, else {now, 1}

local FIRST = 7 -- arguments in front of the claims
local PER_CLAIM = 2
local PER_KIND = 5
local PER_RUN = 5
local FAILURES_KEPT = 20 -- of a kind
local FEW_RUNS = 8 -- for which it is looked at whether the next due time is another one at all
local NEAR = 5000 -- ms: what is due later is mostly the end of a lease
local ODD = { now }
local again, claims, kinds = tonumber(ARGV[1]), math.abs(ARGV[6]), tonumber(ARGV[7]) or tonumber(string.match(ARGV[7], '^%d+'))
local kinds_at = FIRST + PER_CLAIM * claims
local runs_at = kinds_at + PER_KIND * kinds
local n = (#ARGV - runs_at) / PER_RUN
local ended = n - again

-- 1. Each run holds its task, if its mark says so.
local fences, marks, closed = {}, {}, {}
for i = 1, claims do fences[i] = ARGV[FIRST + 2 * i - 1] end
for i, mark in ipairs(redis.call('HMGET', KEYS[5], unpack(fences))) do
  if not mark then return ODD end
  local all, settled, open = { byte(mark, 1, -17) }, ARGV[FIRST + 2 * i], 0
  for k = 1, #settled do
    local at = byte(settled, k) + 1
    -- guard: plain-settle-marks
    -- rule: holds-its-task
    if all[at] ~= byte(RUNNING) then return ODD end
    all[at] = byte(SETTLED)
  end
  for k = 1, #all do
    if all[k] == byte(RUNNING) then open = open + 1 end
  end
  -- guard: plain-settle-open
  -- rule: claim-ends
  if open == 0 then closed[#closed + 1] = fences[i] end
  marks[2 * i - 1], marks[2 * i] = fences[i], string.char(unpack(all)) .. sub(mark, -16)
end

-- 2. What is rare: each is nothing to runs whose tasks it is not about.
local names, refs = {}, {}
for i = 1, n do
  names[i], refs[i] = ARGV[runs_at + PER_RUN * i - 4], ARGV[runs_at + PER_RUN * i - 3]
end
local HOLDS, LANED, had, give_back = nil, nil, nil, nil
local rare = redis.call('EXISTS', base .. 'orders', base .. 'groups', base .. 'serial', base .. 'pulse', base .. 'holds', base .. 'open', base .. 'bytes', base .. 'uses', base .. 'suspects', base .. 'laned')
if rare > 0 and redis.call('EXISTS', base .. 'uses') == 1 then -- mostly there is nothing else
  had, rare = redis.call('HMGET', base .. 'uses', unpack(refs)), rare - 1
end
if rare > 0 then
  if redis.call('EXISTS', base .. 'open') == 1 or redis.call('HEXISTS', base .. 'holds', SCOPE_ALL) == 1 then return ODD end
  -- guard: plain-rare
  -- rule: orders
  for _, name in ipairs({ 'orders', 'groups', 'pulse', 'serial', 'bytes', 'suspects' }) do
    if redis.call('EXISTS', base .. name) == 1 then -- mostly one of them is there
      local of_agents = name == 'serial' or name == 'bytes'
      for _, value in ipairs(redis.call('HMGET', base .. name, unpack(of_agents and names or refs))) do
        if value then return ODD end
      end
    end
  end
  HOLDS, LANED = redis.call('EXISTS', base .. 'holds') == 1, redis.call('EXISTS', base .. 'laned') == 1
end
if had then
  for i = 1, n do
    -- guard: plain-return
    give_back = give_back or had[i]
  end
end
if give_back then
  if again > 0 and ended > 0 and #ARGV[5] > 1 then return ODD end -- what they have used is noted in the order in which they came
  local map = #ARGV[7] > n and sub(ARGV[7], -n)
  give_back = with_returns(refs, had, function(i) return ARGV[kinds_at + PER_KIND * ((map and byte(map, i) or 1) - 1) + 1] end, ARGV[5], with_counting(base, now), base, now)
  if not give_back then return ODD end
end
local tallies = {}
for i = 1, kinds do
  local at = kinds_at + PER_KIND * (i - 1)
  local kind = ARGV[at + 1]
  local counts = redis.call('HMGET', KEYS[8], COUNT_RUNNING .. kind, COUNT_RUNS .. kind)
  tallies[#tallies + 1] = COUNT_RUNNING .. kind
  tallies[#tallies + 1] = string.format('%.0f', (tonumber(counts[1]) or 0) - ARGV[at + 2])
  if ARGV[at + 4] ~= '' then
    -- rule: statistics
    local runs, failures, a, e, c, t, took, least, longest, lag, most_lag = struct.unpack('>I4I4I4I4I4I4I6I6I6I6I6', ARGV[at + 4])
    if counts[2] then
      local whole, o = pcall(cmsgpack.unpack, counts[2])
      if not whole or type(o) ~= 'table' or #o ~= 11 then return ODD end
      for k = 1, 11 do
        if type(o[k]) ~= 'number' then return ODD end
      end
      runs, failures, took, lag = o[1] + runs, o[2] + failures, o[3] + took, o[6] + lag
      least, longest, most_lag = math.min(o[4], least), math.max(o[5], longest), math.max(o[7], most_lag)
      a, e, c, t = o[8] + a, o[9] + e, o[10] + c, o[11] + t
    end
    tallies[#tallies + 1] = COUNT_RUNS .. kind
    tallies[#tallies + 1] = cmsgpack.pack({ runs, failures, took, least, longest, lag, most_lag, a, e, c, t })
  end
end
local values = {}
for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  local form = value and byte(value)
  if form ~= byte(INLINE) and form ~= byte(QUEUED) and form ~= byte(FEW) then return ODD end
  values[names[i]] = value
end
local kept = {}
if ended > 0 then
  for i, value in ipairs(redis.call('HMGET', KEYS[7], unpack(names, again + 1, n))) do kept[names[again + i]] = value end
end

-- 3. The claims. The first write is one that is allowed when memory is full.
-- guard: plain-out-of-memory
-- rule: first-write
if #closed > 0 then
  redis.call('ZREM', KEYS[6], unpack(closed))
  local packed = {}
  for i = 1, #closed do packed[i] = closed[i] .. CLAIM_REFS end
  redis.call('HDEL', KEYS[5], unpack(packed))
  ended_claims(closed, KEYS[5])
else
  redis.call('ZREM', KEYS[6], '')
end
redis.call('HSET', KEYS[5], unpack(marks))
if give_back then give_back() end

-- 4. Tasks that are due again.
-- guard: loud
local LOUD, earliest, hurried = byte(ARGV[5]) ~= byte('1'), math.huge, math.huge -- hurried: of level 1
if again > 0 then
  local adds, states, dues = { 'LT' }, {}, {}
  local key, queue, open = nil, nil, nil
  for i = 1, again do
    local at = runs_at + PER_RUN * (i - 1)
    local agent, due = names[i], ARGV[at + 4]
    -- rule: due-again
    if byte(due) == byte('-') then -- few delays are different ones
      local by = dues[due]
      if not by then
        by = string.format('%.0f', now - due)
        dues[due] = by
      end
      due = by
    end
    if LOUD and tonumber(due) < earliest then earliest = tonumber(due) end
    local form, place, member = byte(values[agent]), ARGV[at + 3], agent
    -- guard: plain-settle-urgent
    if byte(place) == byte('1') and tonumber(due) < hurried then hurried = tonumber(due) end
    -- guard: plain-settle-member
    if form == byte(FEW) and (sub(values[agent], 4, 5) == '\0\0' or sub(values[agent], 6, 12) ~= sub(place, 2)) then -- not the first
      member = agent .. ':' .. sub(place, 2) .. sub(refs[i], #agent + 2)
    end
    adds[2 * i], adds[2 * i + 1] = due, member
    -- rule: tenants
    if LANED and tonumber(due) < now then redis.call('HSET', base .. 'laned', member, '') end -- in front of others that wait
    if form == byte(QUEUED) then
      key = base .. 'queue:' .. sub(place, 1, 1) .. ':' .. agent
      if key ~= open then
        if queue then redis.call('ZADD', open, unpack(queue)) end
        open, queue = key, {}
      end
      queue[#queue + 1] = due
      queue[#queue + 1] = sub(place, 2) .. sub(refs[i], #agent + 2)
    end
    local state = ARGV[at + 5]
    if state == '' then -- it keeps its own; what core stores says itself when the run has ended
      state = redis.call('HGET', KEYS[4], refs[i]) or '\0'
      -- rule: state-since
      local said = sub(state, 2, 3)
      local from = said == SINCE .. '\6' and 10 or said == SINCE .. '\19' and 23 or 2
      state = sub(state, 1, 1) .. SINCE .. struct.pack('>BI6', 6, now) .. sub(state, from)
    end
    states[2 * i - 1], states[2 * i] = refs[i], state
  end
  if queue then redis.call('ZADD', open, unpack(queue)) end
  redis.call('ZADD', KEYS[1], unpack(adds))
  redis.call('HSET', KEYS[4], unpack(states))
  redis.call('HINCRBY', KEYS[9], 'again', ARGV[1])
end

-- 5. Tasks that have ended: the only record of an agent is held inline, like its only task.
local histories = {}
if ended > 0 then
  local dels, sets, task_dels, ends, at_now = {}, {}, {}, {}, string.format('%013.0f', now)
  local changed, short, fails = {}, 0, {}
  if redis.call('EXISTS', base .. 'stale', base .. 'bytes') == 0 then -- else a history may have an index though it is short
    short = math.min(UNLISTED, math.floor(string.match(ARGV[4], '^%d+') / 2))
  end
  for i = again + 1, n do
    local agent, at = names[i], runs_at + PER_RUN * (i - 1)
    local value = values[agent]
    local form = byte(value)
    -- rule: leaves-its-agent
    if form == byte(INLINE) then
      values[agent] = ''
    elseif form == byte(QUEUED) then
      local left = (tonumber(sub(value, 3)) or 1) - 1
      task_dels[#task_dels + 1] = refs[i]
      values[agent] = left > 0 and sub(value, 1, 2) .. left or ''
    else
      local seq, left, high, low = sub(ARGV[at + 3], 2), byte(value, 3, 5)
      local last = 5 + high * 256 + low -- of the first one
      if last > 5 and sub(value, 6, 12) == seq then
        value = sub(value, 1, 2) .. string.char(left - 1, 0, 0) .. sub(value, last + 1)
        last = 5
      else
        local id = sub(refs[i], #agent + 2)
        local name = seq .. string.char(math.floor(#id / 256), #id % 256) .. id
        local from = string.find(value, name, last + 1, true)
        task_dels[#task_dels + 1] = refs[i]
        -- guard: plain-settle-name
        if from then value = sub(value, 1, 2) .. string.char(left - 1) .. sub(value, 4, from - 1) .. sub(value, from + #name) end
      end
      if #value == last then value = last > 5 and INLINE .. sub(value, 6) or '' end -- none but the first is left
      values[agent] = value
    end
    changed[agent] = true
    local old = kept[agent]
    -- rule: records
    if old == HISTORY and redis.call('HLEN', base .. 'history:' .. agent) < short then
      redis.call('HSET', base .. 'history:' .. agent, sub(refs[i], #agent + 2), sub(ARGV[at + 4], -1) .. at_now .. ARGV[at + 5])
      -- guard: plain-settle-records
    elseif old then
      -- guard: plain-settle-history
      histories[#histories + 1] = i
    else
      kept[agent] = true
      ends[#ends + 1] = agent
      ends[#ends + 1] = ARGV[at + 4] .. at_now .. ARGV[at + 5]
    end
    if byte(ARGV[at + 4], -1) == byte(FAILED) then
      fails[#fails + 1] = at_now
      fails[#fails + 1] = refs[i]
    end
  end
  for agent in pairs(changed) do
    if values[agent] ~= '' then
      sets[#sets + 1] = agent
      sets[#sets + 1] = values[agent]
    else
      dels[#dels + 1] = agent
    end
  end
  if #dels > 0 then redis.call('HDEL', KEYS[2], unpack(dels)) end
  if #sets > 0 then redis.call('HSET', KEYS[2], unpack(sets)) end
  if #task_dels > 0 then redis.call('HDEL', KEYS[3], unpack(task_dels)) end
  if #ends > 0 then redis.call('HSET', KEYS[7], unpack(ends)) end
  if #fails > 0 then redis.call('ZADD', base .. 'failed', unpack(fails)) end
  redis.call('HDEL', KEYS[4], unpack(refs, again + 1, n))
  if HOLDS then
    -- rule: hold-ends-with-task
    local scopes_, terms = {}, {}
    for i = again + 1, n do
      scopes_[i - again], terms[i - again] = SCOPE_TASK .. refs[i], HELD .. SCOPE_TASK .. refs[i]
    end
    -- guard: plain-pauses
    if redis.call('HDEL', base .. 'holds', unpack(scopes_)) > 0 then redis.call('ZREM', KEYS[6], unpack(terms)) end
  end
  redis.call('HINCRBY', KEYS[9], 'live', tostring(-ended))
  local completed, failed, cancelled = string.match(ARGV[2], '^(%d+)|(%d+)|(%d+)$')
  if completed ~= '0' then redis.call('HINCRBY', KEYS[9], 'completed', completed) end
  if failed ~= '0' then redis.call('HINCRBY', KEYS[9], 'failed', failed) end
  if cancelled ~= '0' then redis.call('HINCRBY', KEYS[9], 'cancelled', cancelled) end
end

-- 6. The counters.
redis.call('HINCRBY', KEYS[9], 'running', n == 1 and '-1' or tostring(-n))
for i = 1, kinds do
  local at = kinds_at + PER_KIND * (i - 1)
  local kind, failures = ARGV[at + 1], ARGV[at + 5]
  if ARGV[at + 3] ~= '0' then redis.call('HINCRBY', KEYS[8], COUNT_LIVE .. kind, '-' .. ARGV[at + 3]) end
  if failures ~= '' then
    local from, ms = 1, string.format('%013.0f', now)
    while from <= #failures do
      local failure = struct.unpack('>I4c0', sub(failures, from))
      redis.call('LPUSH', base .. 'failures:' .. kind, ms .. failure)
      from = from + 4 + #failure
    end
    -- rule: failures-kept
    redis.call('LTRIM', base .. 'failures:' .. kind, '0', tostring(FAILURES_KEPT - 1))
  end
end
redis.call('HSET', KEYS[8], unpack(tallies))

-- 7. When the partition is due next; whoever sleeps past it is told, unless the caller knows.
local found = redis.call('MGET', KEYS[10], base .. 'watched')
local hint = found[1] or ''
listened = found[2]
local ms, parked = string.match(hint, '^(%d*)(.*)$')
-- rule: wakes
if LOUD and earliest < (tonumber(ms) or math.huge) then
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. string.format(' %.0f', earliest))
end
-- rule: urgent-wakes
local till = hurried < math.huge and redis.call('GET', base .. 'urgent')
if till and hurried < tonumber(till) then
  redis.call('DEL', base .. 'urgent')
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. ' 3')
end
-- rule: next-due
local task, next_ = nil, tonumber(ms)
local followed, near = byte(ARGV[6]) == byte('-'), n <= FEW_RUNS and next_ and next_ - now < NEAR
if followed or near then -- it says so already if that is still in the agenda, and nothing has come in front of it
  for i = 1, again do
    local due = tonumber(ARGV[runs_at + PER_RUN * (i - 1) + 4])
    if due < 0 then due = now - due end
    -- guard: plain-settle-hint
    if not next_ or due < next_ then next_, near = due, false end
  end
  if followed then -- too early is made good by the claim; too late, if that did not come, by nothing
    -- guard: plain-settle-followed
    task = next_ and string.format('%.0f', next_) or ''
  elseif near and redis.call('ZCOUNT', KEYS[1], '-inf', ms) > 0 then
    task = ms
  end
end
if not task then
  task = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
  local lease = redis.call('ZRANGE', KEYS[6], '0', '0', 'WITHSCORES')[2]
  if lease and (not task or tonumber(lease) < tonumber(task)) then task = lease end
end
task = (task or '') .. parked
if task == '' then
  if hint ~= '' then redis.call('DEL', KEYS[10]) end
elseif task ~= hint then
  redis.call('SET', KEYS[10], task)
end
if #histories == 0 then return { listened and -now or now, 1 } end
