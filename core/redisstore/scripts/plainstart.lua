-- plainstart: store a new task that is due now, and lease it, in one step. It changes nothing where an id may be known, where the agent
--        has something else that is due, or where anything could keep the task from running: the caller sends submit then, and claims.
--        Straight on, as plainclaim.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] finished
-- KEYS[4] kinds
-- KEYS[5] counters
-- KEYS[6] due
-- KEYS[7] answers
-- KEYS[8] tasks
-- KEYS[9] claims
-- KEYS[10] leases
-- ARGV[1] most live tasks an agent may have
-- ARGV[2] how many of them in the agenda
-- ARGV[3] agent
-- ARGV[4] id
-- ARGV[5] kind
-- ARGV[6] key, empty for none
-- ARGV[7] record
-- ARGV[8] nonce, 16 bytes, as for claim
-- ARGV[9] lease, ms
-- ARGV[10] the largest fence that the caller has seen, 0: none; behind it the stamp(24) of what it needs to be stored, if any
-- returns {now} if something is out of the ordinary, else {now, due, fence, the task as a claim returns it, next due of the agent or '',
--          next end of a lease}; the last argument is who calls: see answers

local ODD = { now }
local CALLER = ARGV[#ARGV]
local STAMPED = 24 -- longer than a fence alone
-- rule: repeated-call
if byte(CALLER) ~= byte('0') then return ODD end -- it may have been carried out before
local most, few = tonumber(ARGV[1]), tonumber(ARGV[2])
local agent, id, kind, record = ARGV[3], ARGV[4], ARGV[5], ARGV[7]
local ref, level = agent .. ':' .. id, byte(record)

-- 1. What is rare, and could be about this task.
local waits = false -- whether something is parked
if redis.call('EXISTS', base .. 'holds', base .. 'parked', base .. 'open', base .. 'limits', base .. 'gone', base .. 'profiles', base .. 'watched') > 0 then
  -- rule: limits
  if redis.call('EXISTS', base .. 'open', base .. 'limits') > 0 or redis.call('HEXISTS', base .. 'parked', kind) == 1 then return ODD end
  if redis.call('HEXISTS', base .. 'profiles', agent) == 1 then return ODD end -- its hours may be quiet, and it may have a quota
  -- rule: holds
  local scopes = { SCOPE_ALL, SCOPE_KIND .. kind, SCOPE_AGENT .. agent, SCOPE_KEY .. ARGV[6], SCOPE_TASK .. ref }
  for _, held in ipairs(redis.call('HMGET', base .. 'holds', unpack(scopes))) do
    -- guard: start-held
    if held then return ODD end
  end
  -- rule: id-was-dropped
  if redis.call('ZSCORE', base .. 'gone', ref) then return ODD end
  local there = redis.call('EXISTS', base .. 'parked', base .. 'parked', base .. 'watched')
  waits, listened = there > 1, there % 2 == 1
end
local lease = redis.call('ZRANGE', KEYS[10], '0', '0', 'WITHSCORES')[2]
-- rule: expired-lease repeated-nonce
if lease and tonumber(lease) <= now or redis.call('HEXISTS', KEYS[9], CLAIM_NONCE .. ARGV[8]) == 1 then return ODD end

-- 2. Whether the id is known.
local value = redis.call('HGET', KEYS[2], agent)
local form = value and byte(value)
-- rule: id-is-live
if value and form ~= byte(INLINE) and redis.call('HEXISTS', KEYS[8], ref) == 1 then return ODD end
local kept = redis.call('HGET', KEYS[3], agent)
-- rule: id-has-ended
if kept == HISTORY then
  if redis.call('HEXISTS', base .. 'history:' .. agent, id) == 1 then return ODD end
elseif kept and sub(kept, 3, 2 + #id) == id then
  return ODD
end

-- 3. Where its name goes, and what else its agent has: that is of the same level, and none of it is due.
local counters, seen = redis.call('HMGET', KEYS[5], 'clock', 'submitted', 'live', 'running', 'stamps'), ARGV[10]
if #seen > STAMPED then
  -- guard: stamp-start
  -- rule: stamp
  if not string.find(counters[5] or '', sub(seen, -STAMPED), 1, true) then return ODD end
  seen = sub(seen, 1, -STAMPED - 1)
end
local clock = math.max((tonumber(counters[1]) or 0) + 1, now * 1024)
local seq, others, next_due = struct.pack('>I7', clock), {}, ''
local named = seq .. string.char(math.floor(#id / 256), #id % 256) .. id
-- guard: start-long-alone
-- rule: long-alone
local stored, inlined = seq .. record, not value and (few < 2 or #record < INLINE_MOST)
if inlined then
  stored = INLINE .. stored
  value = stored
elseif not value then
  value = FEW .. string.char(level, 1, 0, 0) .. named
elseif form == byte(QUEUED) then
  local mask, live = sub(value, 2, 2), tonumber(sub(value, 3))
  if not live or live >= most or ({ ['1'] = 49, ['2'] = 50, ['4'] = 51 })[mask] ~= level then return ODD end
  next_due = redis.call('ZRANGE', base .. 'queue:' .. string.char(level) .. ':' .. agent, '0', '0', 'WITHSCORES')[2] or ''
  value = QUEUED .. mask .. live + 1
elseif form == byte(INLINE) then
  local at, long = 10, #value - 1
  if byte(value, 9) ~= level or most < 2 or few < 2 then return ODD end
  if sub(value, at + 2, at + 1 + byte(value, at) * 256 + byte(value, at + 1)) == id then return ODD end
  others[1] = agent
  value = FEW .. string.char(level, 2, math.floor(long / 256), long % 256) .. sub(value, 2) .. named
elseif form == byte(FEW) then
  local live, high, low = byte(value, 3, 5)
  -- rule: few-in-the-agenda most-live-tasks
  if byte(value, 2) ~= level or live >= few or live >= most then return ODD end
  local first = high * 256 + low
  if first > 0 and sub(value, 16, 15 + byte(value, 14) * 256 + byte(value, 15)) == id then return ODD end
  others[1] = agent
  local at = 6 + first
  while at < #value do
    high, low = byte(value, at + 7, at + 8)
    local last = at + 8 + high * 256 + low
    others[#others + 1] = agent .. ':' .. sub(value, at, at + 6) .. sub(value, at + 9, last)
    at = last + 1
  end
  value = sub(value, 1, 2) .. string.char(live + 1) .. sub(value, 4) .. named
else
  return ODD
end
for _, score in ipairs(#others > 0 and redis.call('ZMSCORE', KEYS[1], unpack(others)) or {}) do
  if score and (next_due == '' or tonumber(score) < tonumber(next_due)) then next_due = score end
end
-- guard: start-order
if next_due ~= '' and tonumber(next_due) <= now then return ODD end

-- 4. It is stored and leased.
-- rule: fence-grows
local fence = string.format('%.0f', math.max(clock + 1, seen + 1))
local due, till = string.format('%.0f', now), string.format('%.0f', now + ARGV[9])
redis.call(
  'HSET', KEYS[5], 'clock', fence, 'submitted', string.format('%.0f', (tonumber(counters[2]) or 0) + 1),
  'live', string.format('%.0f', (tonumber(counters[3]) or 0) + 1), 'running', string.format('%.0f', (tonumber(counters[4]) or 0) + 1)
)
redis.call('HSET', KEYS[2], agent, value)
if not inlined then redis.call('HSET', KEYS[8], ref, stored) end
redis.call('HINCRBY', KEYS[4], COUNT_LIVE .. kind, '1')
redis.call('HINCRBY', KEYS[4], COUNT_RUNNING .. kind, '1')
redis.call(
  'HSET', KEYS[9], fence, RUNNING .. ARGV[8], fence .. CLAIM_REFS, cmsgpack.pack({ agent, id, due }), CLAIM_NONCE .. ARGV[8], fence
)
-- guard: start-lease
redis.call('ZADD', KEYS[10], till, fence)
if not lease or tonumber(lease) > tonumber(till) then lease = till end

-- 5. When the partition is due next; what is parked in it stays so.
local task = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
-- rule: next-due
local hint = lease
if task and tonumber(task) < tonumber(lease) then hint = task end
if waits then hint = hint .. string.match(redis.call('GET', KEYS[6]) or '', '^%d*(.*)$') end
redis.call('SET', KEYS[6], hint)
redis.call('HSET', KEYS[7], sub(CALLER, 10), sub(CALLER, 2, 9) .. cmsgpack.pack({ now, now }))
return { listened and -now or now, now, fence, stored, next_due, lease }
