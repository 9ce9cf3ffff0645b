-- find: the next of the tasks of all agents that have failed, that run, or that are overdue, in order, found in bounded work.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] claims
-- KEYS[4] leases
-- KEYS[5] failed
-- ARGV[1] what: f those that failed, the last ones first; r those that run, by the end of their leases; w those that are due and wait in
--         the agenda, longest first
-- ARGV[2] the score behind which the walk goes on; '' to begin
-- ARGV[3] what of that score has been: '<' all, '>' nothing, '=' up to a member
-- ARGV[4] that member, or ''
-- ARGV[5] the score at which the walk ends, which is the lowest one that is wanted of f
-- ARGV[6] most entries
-- ARGV[7] 1 if the walk has not come to the end of what the member in ARGV[4] stands for
-- returns {now, 1 at the end, score and member that the walk has come to, for each task: agent, id or '' for those of a queue, score,
--         member, end of the lease or '', and what its nonce begins with or ''}

local what, from, ties, after, stop, most = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local down = what == FAILED
local key = down and KEYS[5] or what == IS_RUNNING and KEYS[4] or KEYS[1]
if what == IS_WAITING then stop = now elseif what == IS_RUNNING then stop = nil end
local WORK = 1000 -- entries that are looked at
local BYTES = 262144 -- of agents

-- below says whether an entry comes before where the walk goes on, from the low end.
local function below(member, score)
  if score ~= from then return score < from end
  if ties == '=' then return member < after or member == after and not down end
  return (ties == '<') ~= down
end

-- rank is that of the entry with which the walk goes on.
local function rank()
  local size = redis.call('ZCARD', key)
  if not from then return down and size - 1 or 0 end
  local there = ties == '=' and redis.call('ZSCORE', key, after)
  if there and tonumber(there) == from then return redis.call('ZRANK', key, after) + (down and -1 or ARGV[7] == '1' and 0 or 1) end
  local low, high = 0, size
  while low < high do
    local middle = math.floor((low + high) / 2)
    local e = redis.call('ZRANGE', key, middle, middle, 'WITHSCORES')
    if below(e[1], tonumber(e[2])) then low = middle + 1 else high = middle end
  end
  return down and low - 1 or low
end

-- page returns up to n entries from a rank on, in the order of the walk: member and score in turn.
local function page(at, n)
  if not down then return redis.call('ZRANGE', key, at, at + n - 1, 'WITHSCORES') end
  if at < 0 then return {} end
  local all, turned = redis.call('ZRANGE', key, math.max(at - n + 1, 0), at, 'WITHSCORES'), {}
  for i = #all - 1, 1, -2 do
    turned[#turned + 1] = all[i]
    turned[#turned + 1] = all[i + 1]
  end
  return turned
end

local reply, n, bytes = { now, 0, '', '' }, 0, 0
local function add(agent, id, score, member, lease, who)
  local k = #reply
  reply[k + 1], reply[k + 2], reply[k + 3], reply[k + 4], reply[k + 5], reply[k + 6] = agent, id, score, member, lease or '', who or ''
  n = n + 1
end

-- leased adds the tasks of a claim that still run.
local function leased(fence, score)
  local found = redis.call('HMGET', KEYS[3], fence, fence .. CLAIM_REFS)
  local whole, refs = false, nil
  if found[1] and found[2] then whole, refs = pcall(cmsgpack.unpack, found[2]) end
  for i = 1, whole and #refs / 3 or 0 do -- what we did not write a claim takes away
    if byte(found[1], i) == byte(RUNNING) then add(refs[3 * i - 2], refs[3 * i - 1], score, fence, score, sub(found[1], -16, -9)) end
  end
end

-- booked adds what an entry of the agenda is about.
local function booked(member, score)
  local agent, id = string.match(member, '^([^:]*):.......(.*)$')
  if not agent then
    agent, id = member, ''
    local value = redis.call('HGET', KEYS[2], agent)
    if not value then return end -- a claim takes it away
    bytes = bytes + #value
    local high, low, at = nil, nil, 2
    if byte(value) == byte(FEW) then at = 6 end
    if byte(value) ~= byte(QUEUED) then
      high, low = byte(value, at + 8, at + 9)
      if not low then return end
      id = sub(value, at + 10, at + 9 + high * 256 + low)
    end
  end
  add(agent, id, score, member)
end

local at, looked, over = rank(), 0, false
while not over and n < most and looked < WORK and bytes < BYTES do
  local entries = page(at, math.min(100, most))
  if #entries == 0 then over = true end
  for i = 1, #entries, 2 do
    local member, score = entries[i], entries[i + 1]
    local ms = tonumber(score)
    if down and ms < stop or not down and stop and ms > stop then
      over = true
      break
    end
    if n >= most or bytes >= BYTES then break end
    if down then
      local agent, id = string.match(member, '^([^:]*):(.*)$')
      if agent then add(agent, id, score, member) end
    elseif what == IS_WAITING then
      booked(member, score)
    elseif byte(member) ~= byte(HELD) then
      leased(member, score)
    end
    looked, reply[3], reply[4] = looked + 1, score, member
    at = at + (down and -1 or 1)
  end
end
reply[2] = over and 1 or 0
return reply
