-- look: when the partition is due next, and what ends.
-- needs: layout alone

-- lasting says whether a hold is one still.
local function lasting(value)
  local till = value and tonumber(sub(value, 1, 13))
  return till and (till == 0 or till > now)
end

-- stopped says whether everything is held.
local function stopped() return lasting(redis.call('HGET', base .. 'holds', SCOPE_ALL)) end

-- parked_kinds is how `due` names the kinds that are parked: '|' kind for each, or '|*' if they are more than NAMED, as
-- whoever submits chooses how many there are. Who reads that asks for those that it has a handler for.
local NAMED = 32
local function parked_kinds()
  local n = redis.call('HLEN', base .. 'parked')
  if n == 0 then return '' end
  if n > NAMED then return HINT_MANY end
  local names = {}
  for _, kind in ipairs(redis.call('HKEYS', base .. 'parked')) do
    if kind ~= HELD then names[#names + 1] = HINT_KIND .. kind end
  end
  return table.concat(names)
end

-- look sets `due` to what the agenda, the leases and the parked kinds say, and returns the heads of the first two.
-- rule: next-due
local function look()
  local function head(name) return redis.call('ZRANGE', base .. name, 0, 0, 'WITHSCORES')[2] end
  local still = stopped()
  local open = redis.call('EXISTS', base .. 'open', base .. 'open', base .. 'watched')
  local task, lease = nil, head('leases')
  if not still then task = head('agenda') end
  if open % 2 == 1 then listened = true end
  if open > 1 and not still then task = math.min(tonumber(task) or now, now) end
  local due = math.min(tonumber(task) or math.huge, tonumber(lease) or math.huge)
  local hint = due < math.huge and string.format('%.0f', due) or ''
  if not still then hint = hint .. parked_kinds() end
  if hint ~= '' then redis.call('SET', base .. 'due', hint) else redis.call('DEL', base .. 'due') end
  return task, lease
end

-- rouse ends the rest of an activity task by an order, which is as good as a touch.
local function rouse(ref, live)
  local pulse = redis.call('HGET', base .. 'pulse', ref)
  if not pulse then return end
  if dozing(pulse) then rested(select(2, parse(live)), -1) end
  redis.call('HSET', base .. 'pulse', ref, (string.gsub(pulse, '|00?|0|0(|?%d*)$', string.format('|%.0f|0|0%%1', now))))
end

-- busy_of says which of some agents have a run in flight beside which no other of theirs may run. A mark whose claim has
-- ended is nobody's: it was left by a process that knows no such marks.
local function busy_of(agents)
  if redis.call('EXISTS', base .. 'serial') == 0 then return {} end
  local busy = redis.call('HMGET', base .. 'serial', unpack(agents))
  for i, fence in ipairs(busy) do
    if fence and redis.call('HEXISTS', base .. 'claims', fence .. CLAIM_REFS) == 0 then
      redis.call('HDEL', base .. 'serial', agents[i])
      busy[i] = false
    end
  end
  return busy
end

-- free puts an agent back whose only run has ended, behind those that wait already. It returns whether it is due.
local function free(agent, fence)
  if redis.call('HGET', base .. 'serial', agent) ~= fence then return end
  redis.call('HDEL', base .. 'serial', agent)
  local first = nil
  for level = 1, 3 do
    local due = tonumber(redis.call('ZRANGE', base .. 'queue:' .. level .. ':' .. agent, 0, 0, 'WITHSCORES')[2])
    if due and (not first or due < first) then first = due end
  end
  if first then
    redis.call('ZADD', base .. 'agenda', 'LT', math.max(first, now), agent)
    front.hurry(math.max(first, now))
    announce(math.max(first, now))
  end
  return first and first <= now
end
