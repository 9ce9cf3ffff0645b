-- extend: move the ends of leases that are still held, and keep the progress of their runs.
-- needs: layout alone
-- then: tasks shortened
-- KEYS[1] agenda
-- KEYS[2] state
-- KEYS[3] claims
-- KEYS[4] leases
-- ARGV[1] number of fences
-- ARGV[2..] 2 for each fence: fence, lease ms, behind an l if its process leaves
-- ARGV[..] 5 for each run with progress: fence, index in its claim, agent:id, state without its crashes, which stay, and its
--          number, 0 for none
-- returns {now, for each fence: 1 or 0 (lost), {for each run that is to end: place of its fence, index, '' (deleted) or 'x'
--          and what was said; for each claim of more than one that runs: place of its fence, how many, '+' and its process}}

local n = tonumber(ARGV[1])
local reply, adds, fences, soonest = { now }, {}, {}, nil
redis.call('ZREM', KEYS[4], '') -- the first write must be one that is allowed when memory is full
-- Asked at once, as mostly neither is there; then both are looked into.
local unusual = redis.call('EXISTS', base .. 'notices', base .. 'orders') > 0
for i = 1, n do
  local fence, lease = ARGV[2 * i], ARGV[2 * i + 1]
  local leaves = sub(lease, 1, 1) == LEAVES
  if leaves then lease = sub(lease, 2) end
  fences[i] = fence
  local held = redis.call('ZSCORE', KEYS[4], fence)
  reply[i + 1] = held and 1 or 0
  if held then
    if unusual then redis.call('ZREM', base .. 'notices', fence) end
    if leaves then redis.call('ZADD', base .. 'notices', now, LEAVES .. fence) end
    -- guard: extend-on-redis
    local till = now + tonumber(lease)
    -- `due` is no later than the end of any lease: only one that has become shorter is news.
    if till < tonumber(held) and (not soonest or till < soonest) then soonest = till end
    adds[#adds + 1] = till
    adds[#adds + 1] = fence
  end
end
for i = 1, #adds, 1000 do redis.call('ZADD', KEYS[4], 'XX', unpack(adds, i, math.min(i + 999, #adds))) end
-- claim_of is what is known of a claim: the marks of its runs, and their tasks.
local claims = {}
local function claim_of(fence)
  if not claims[fence] then claims[fence] = redis.call('HMGET', KEYS[3], fence, fence .. CLAIM_REFS) end
  return claims[fence][1], claims[fence][2]
end

for i = 2 * n + 2, #ARGV, 5 do
  local fence, index, ref, state = ARGV[i], tonumber(ARGV[i + 1]) + 1, ARGV[i + 2], ARGV[i + 3]
  local marks, packed = claim_of(fence)
  local refs = packed and cmsgpack.unpack(packed) or {}
  -- The claim may be another one, if a failover has undone the caller's and its fence was given again: then this is not its task.
  local holds = refs[3 * index] and refs[3 * index - 2] .. ':' .. refs[3 * index - 1] == ref
  if marks and holds and index <= #marks - 16 and byte(marks, index) == byte(RUNNING) then
    local old, number = redis.call('HGET', KEYS[2], ref) or '\0', tonumber(ARGV[i + 4])
    local last = sub(old, 2, 3) == SINCE .. '\19' and struct.unpack('>I7', old, 10) == tonumber(fence) and struct.unpack('>I6', old, 17) or 0
    -- guard: late-state-on-redis
    if number == 0 or number >= last then
      -- Its crashes stay counted until the run ends.
      local since = number == 0 and struct.pack('>BI6', 6, now) or '\19' .. struct.pack('>I6I7I6', now, fence, number)
      -- guard: progress
      redis.call('HSET', KEYS[2], ref, sub(old, 1, 1) .. SINCE .. since .. state)
    end
  end
end

local ended = {}
local function ends(i, index, how)
  ended[#ended + 1] = i - 1
  ended[#ended + 1] = index - 1
  ended[#ended + 1] = how
end

-- ordered finds the runs of a claim whose tasks are to be cancelled.
local function ordered(i, marks)
  local refs = cmsgpack.unpack(redis.call('HGET', KEYS[3], fences[i] .. CLAIM_REFS))
  for k = 1, #refs / 3 do
    local order = byte(marks, k) == byte(RUNNING) and redis.call('HGET', base .. 'orders', refs[3 * k - 2] .. ':' .. refs[3 * k - 1])
    if order and byte(order) == byte(ORDER_CANCEL) then ends(i, k, order) end
  end
end

local known = #fences == 1 and claims[fences[1]] -- a save is about one claim
local all = known and { known[1] } or redis.call('HMGET', KEYS[3], unpack(fences))
for i, marks in ipairs(all) do
  if reply[i + 1] == 1 and marks then
    if string.find(sub(marks, 1, -17), LOST, 1, true) then
      for k = 1, #marks - 16 do
        if byte(marks, k) == byte(LOST) then ends(i, k, '') end
      end
    end
    if unusual then ordered(i, marks) end
    if #marks > 17 then
      local _, running = string.gsub(sub(marks, 1, -17), RUNNING, '')
      if running > 1 then ends(i, running + 1, '+' .. sub(marks, -16, -9)) end
    end
  end
end
reply[n + 2] = ended
if not soonest then return reply end
