-- read: tasks of one agent, by id, as far as they fit.
-- needs: look holds known counting bounded
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] state
-- KEYS[4] claims
-- KEYS[5] leases
-- KEYS[6] finished
-- ARGV[1] agent
-- ARGV[2] retention of finished records, ms
-- ARGV[3] 1 to find out how much stands before a task in the agenda, and which run it waits for; - if the caller knows who holds it
-- ARGV[4] most bytes of tasks, behind a + if the first one is wanted however large it is
-- ARGV[5..] 1 for each task: id
-- returns {now, for each id, as far as they fit and until a step has read enough bytes: place, live or record, due or 0, state or '', {scope, hold of each hold}, order or '',
--          resting, end of the lease or '', fence or '' and what its nonce begins with, of its claim or, if asked, of that of the run
--          which it waits for, what stands before it in the agenda, when an activity task was last touched or 0, {limit, what it allows or '', how many run, how many wait, when
--          its bucket would be empty or ''} of the line that it stands in}
--          place: w waiting, r running, p parked, d finished, g finished and its record dropped, '' unknown

local FIRST = '+' -- in front of the bytes that there is room for
local agent, retention, explain = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local room, however_large = tonumber(ARGV[4]), byte(ARGV[4]) == byte(FIRST)
local value = redis.call('HGET', KEYS[2], agent)
local kept = redis.call('HGET', KEYS[6], agent)
local HOLDS, ORDERS = redis.call('EXISTS', base .. 'holds') == 1, redis.call('EXISTS', base .. 'orders') == 1
local gone_ = redis.call('EXISTS', base .. 'gone', base .. 'gone', base .. 'watched')
local PULSE, GONE = redis.call('EXISTS', base .. 'pulse') == 1, gone_ > 1

local function holds_of(id, live)
  local held = {}
  if not HOLDS then return held end
  local all = scopes(agent, id, live)
  for i, text in ipairs(redis.call('HMGET', base .. 'holds', unpack(all))) do
    if lasting(text) then
      held[#held + 1] = all[i]
      held[#held + 1] = text
    end
  end
  return held
end

-- holder finds the claim of a task that runs: the end of its lease, its fence, and who made it. All that runs of the agent is looked
-- for once.
local CLAIMS = 100 -- that are read at once
local holders = nil
local function holder(id)
  if holders then return unpack(holders[id] or { '', '', '' }) end
  holders = {}
  local entries, fields, leases = redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES'), {}, {}
  for k = 1, #entries, 2 do
    if byte(entries[k]) ~= byte(HELD) then
      fields[#fields + 1], fields[#fields + 2] = entries[k], entries[k] .. CLAIM_REFS
      leases[#fields] = entries[k + 1]
    end
  end
  for from = 1, #fields, 2 * CLAIMS do
    local found = redis.call('HMGET', KEYS[4], unpack(fields, from, math.min(from + 2 * CLAIMS - 1, #fields)))
    for k = 1, #found, 2 do
      local marks, packed, at = found[k], found[k + 1], from + k - 1
      local whole, refs = false, nil
      if marks and packed and string.find(packed, agent, 1, true) then whole, refs = pcall(cmsgpack.unpack, packed) end
      for i = 1, whole and #refs / 3 or 0 do -- what is not what we wrote a claim takes away
        if refs[3 * i - 2] == agent and byte(marks, i) == byte(RUNNING) then
          holders[refs[3 * i - 1]] = { leases[at + 1], fields[at], sub(marks, -16, -9) }
        end
      end
    end
  end
  return holder(id)
end

-- beside finds the claim of the run beside which no other of the agent's may run.
local function beside()
  local fence = redis.call('HGET', base .. 'serial', agent)
  local lease = fence and redis.call('ZSCORE', KEYS[5], fence)
  if not lease then return '', '', '' end
  return lease, fence, sub(redis.call('HGET', KEYS[4], fence) or '', -16, -9)
end

-- line_of is the line that a task stands in.
local function line_of(ref)
  local bucket = redis.call('HGET', base .. 'lined', ref)
  if not bucket then return {} end
  local id = counting.split(bucket)
  local function of(name, field) return redis.call('HGET', base .. name, field) or '' end
  local empty = redis.call('ZSCORE', base .. 'rates', bucket) -- for as long as it has not been forgotten
  if empty and tonumber(empty) <= now then empty = nil end
  local ends = redis.call('ZSCORE', base .. 'periods', bucket)
  if ends and tonumber(ends) <= now then ends = nil end
  local allowed = of('limits', id)
  if string.match(id, '^[^|]*|[^|]*|o') then allowed = own.allowed(sub(bucket, #id + 2), id) end -- it is of the profile of the agent
  return { bucket, allowed, of('flight', bucket), of('lines', bucket), empty or '', ends and of('spent', bucket) or '', ends or '', of('learned', bucket), of('reserved', bucket) }
end

local STEP = 262144 -- bytes
local reply, size = { gone_ % 2 == 1 and -now or now }, 0
for i = 5, #ARGV do
  local id = ARGV[i]
  local live, member = find(agent, value, id)
  local place_, what, due, state, held, order, resting, lease, fence, who, ahead, last, line = '', '', 0, '', {}, '', 0, '', '', '', 0, 0, {}
  if live then
    local ref = agent .. ':' .. id
    local name
    place_, due, name = where(agent, id, live, member)
    what = live
    state = redis.call('HGET', KEYS[3], ref) or ''
    held = holds_of(id, live)
    if name and byte(name) == byte(HELD) and #held == 0 then place_ = IS_WAITING end -- it is about to be put back
    order = ORDERS and redis.call('HGET', base .. 'orders', ref) or ''
    local pulse = PULSE and redis.call('HGET', base .. 'pulse', ref)
    if pulse then last = tonumber(string.match(pulse, '^%d*|[^|]*|%d*|%d*|%d*|(%d+)$') or 0) end
    if place_ == IS_RUNNING then
      if ARGV[3] ~= '-' then lease, fence, who = holder(id) end -- the fence says when it was claimed
    else
      if pulse and tonumber(string.match(pulse, '^%d*|[^|]*|(%d*)|')) == 0 then resting = 1 end
      if explain then
        ahead = redis.call('ZRANK', KEYS[1], member or agent) or 0
        lease, fence, who = beside()
        if name then line = line_of(ref) end
      end
    end
  else
    local r = recorded(agent, kept, id)
    if r and ended_at(r) > now - retention then
      place_, what = IS_FINISHED, r
    elseif GONE then
      r = end_of(redis.call('ZSCORE', base .. 'gone', agent .. ':' .. id), retention)
      if r then place_, what = IS_DROPPED, r end
    end
  end
  size = size + #what + #state + #order
  if size > room and (i > 5 or not however_large) then break end
  for _, field in ipairs({ place_, what, due, state, held, order, resting, lease, fence, who, ahead, last, line }) do
    reply[#reply + 1] = field
  end
  if size >= STEP then break end
end
return reply
