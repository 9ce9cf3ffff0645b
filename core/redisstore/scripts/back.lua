-- back: lease runs again whose process lives although their lease was lost, and take their crashes back.
-- needs: look holds
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] state
-- KEYS[4] claims
-- KEYS[5] leases
-- ARGV[1] nonce, 16 bytes: the same nonce gets the same runs
-- ARGV[2] lease, ms; 0 to lease none
-- ARGV[3] fence of the lease that was lost
-- ARGV[4..] 2 for each run: agent, id
-- returns {now, fence or '', for each run that is leased again: its index, agent, id}

local FIRST = 3 -- arguments in front of the runs
local nonce, lease, lost = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local marks, refs, names = {}, {}, {}
redis.call('ZREM', KEYS[5], '') -- the first write must be one that is allowed when memory is full

-- answer lists the runs of a claim that have not ended.
local function answer(fence)
  local found = redis.call('HMGET', KEYS[4], fence, fence .. CLAIM_REFS)
  local all, reply = found[2] and cmsgpack.unpack(found[2]) or {}, { now, fence }
  for i = 1, #all / 3 do
    if byte(found[1], i) == byte(RUNNING) then
      for _, v in ipairs({ i - 1, all[3 * i - 2], all[3 * i - 1] }) do reply[#reply + 1] = v end
    end
  end
  return reply
end
local before = redis.call('HGET', KEYS[4], CLAIM_NONCE .. nonce)
if before then return answer(before) end

-- Limits and other runs of the agent would have to be asked: where there are such, the task runs again, and nothing is counted.
local free_ = lease > 0 and redis.call('EXISTS', base .. 'limits', base .. 'bounds', base .. 'serial') == 0
for i = FIRST + 1, #ARGV, 2 do
  local agent, id = ARGV[i], ARGV[i + 1]
  local ref = agent .. ':' .. id
  local value = redis.call('HGET', KEYS[2], agent)
  local live, member = find(agent, value, id)
  local fence = live and redis.call('HGET', base .. 'suspects', ref)
  if fence == lost or fence == lost .. CLAIMED_SINCE then
    local state = redis.call('HGET', KEYS[3], ref) or '\1'
    local crashes = byte(state) - 1
    redis.call('HSET', KEYS[3], ref, string.char(crashes) .. sub(state, 2))
    if crashes == 0 then redis.call('HDEL', base .. 'suspects', ref) else redis.call('HSET', base .. 'suspects', ref, '') end
    local at, due, name = where(agent, id, live, member)
    if free_ and fence == lost and at ~= IS_RUNNING and redis.call('HEXISTS', base .. 'orders', ref) == 0 then
      lift(agent, id, live, member, at, name)
      marks[#marks + 1] = RUNNING
      refs[#refs + 1], refs[#refs + 2], refs[#refs + 3] = agent, id, due
      more(more_running, select(2, parse(live)), 1)
    end
  end
end
if #marks == 0 then return { now, '' } end
local fence = string.format('%.0f', ticks(1, tonumber(lost)))
redis.call('HSET', KEYS[4], fence, table.concat(marks) .. nonce, fence .. CLAIM_REFS, cmsgpack.pack(refs), CLAIM_NONCE .. nonce, fence)
redis.call('ZADD', KEYS[5], now + lease, fence)
count('running', #marks)
counted()
look()
return answer(fence)
