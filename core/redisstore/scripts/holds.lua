-- holds: tasks that are out of the queue, and why.
-- needs: look

local function key_of(live)
  local high, low = byte(live, 9, 10)
  local at = 11 + high * 256 + low
  at = at + 1 + byte(live, at)
  high, low = byte(live, at, at + 1)
  return sub(live, at + 2, at + 1 + high * 256 + low)
end

-- rule: holds
local function scopes(agent, id, live)
  local _, kind = parse(live)
  local key = key_of(live)
  return { SCOPE_ALL, SCOPE_KIND .. kind, SCOPE_AGENT .. agent, SCOPE_TASK .. agent .. ':' .. id, key ~= '' and SCOPE_KEY .. key or nil }
end

-- hold_of is the widest scope that holds a task now, by a hold that began after a time, or whenever; nil for none.
local function hold_of(agent, id, live, after)
  local all = scopes(agent, id, live)
  for i, value in ipairs(redis.call('HMGET', base .. 'holds', unpack(all))) do
    if lasting(value) and not (after and tonumber(sub(value, 14, 26)) <= after) then return all[i] end
  end
end

-- bay is where tasks under a hold are parked.
local function bay(scope) return byte(scope) == byte(SCOPE_TASK) and HELD_TASKS or HELD .. scope end

local function park(agent, name, id, due)
  redis.call('ZADD', base .. 'parked:' .. name, due, agent .. ':' .. id)
  redis.call('HINCRBY', base .. 'parked', byte(name) == byte(HELD) and HELD or name, 1)
end

local function unparked(name, n)
  local field = byte(name) == byte(HELD) and HELD or name
  if redis.call('HINCRBY', base .. 'parked', field, -n) <= 0 then redis.call('HDEL', base .. 'parked', field) end
end

-- berth is where the tasks of an agent are parked that wait for room under a limit.
local function berth(agent) return HELD .. SCOPE_LIMIT .. agent end

-- leave_line takes a task out of the line that it waits in.
local function leave_line(agent, id)
  local ref = agent .. ':' .. id
  local bucket = redis.call('HGET', base .. 'lined', ref)
  if not bucket then return end
  redis.call('HDEL', base .. 'lined', ref)
  count('lined', -1)
  redis.call('ZREM', base .. 'line:' .. bucket .. ':' .. agent, id)
  if redis.call('EXISTS', base .. 'line:' .. bucket .. ':' .. agent) == 0 then redis.call('ZREM', base .. 'line:' .. bucket, agent) end
  if redis.call('HINCRBY', base .. 'lines', bucket, -1) <= 0 then
    redis.call('HDEL', base .. 'lines', bucket)
    redis.call('ZREM', base .. 'open', SCOPE_LIMIT .. bucket)
    redis.call('ZREM', base .. 'leases', HELD .. SCOPE_LIMIT .. bucket)
  end
end

-- where says how a live task is: w waiting, p parked (and the name of the place), r running; and when it is due.
local function where(agent, id, live, member)
  local due
  if member then
    due = redis.call('ZSCORE', base .. 'agenda', member)
  else
    due = redis.call('ZSCORE', base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent, sub(live, 1, 7) .. id)
  end
  if due then return IS_WAITING, tonumber(due) end
  if redis.call('EXISTS', base .. 'parked') == 1 then
    local _, kind = parse(live)
    local names = { kind }
    for i, scope in ipairs(scopes(agent, id, live)) do names[i + 1] = bay(scope) end
    names[#names + 1] = berth(agent)
    for _, name in ipairs(names) do
      due = redis.call('ZSCORE', base .. 'parked:' .. name, agent .. ':' .. id)
      if due then return IS_PARKED, tonumber(due), name end
    end
  end
  return IS_RUNNING, 0
end

-- lift takes a task out of where it is.
local function lift(agent, id, live, member, place, name)
  if place == IS_PARKED then
    redis.call('ZREM', base .. 'parked:' .. name, agent .. ':' .. id)
    unparked(name, 1)
    if name == berth(agent) then leave_line(agent, id) end
  elseif place == IS_WAITING and member then
    redis.call('ZREM', base .. 'agenda', member)
  elseif place == IS_WAITING then
    redis.call('ZREM', base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent, sub(live, 1, 7) .. id)
    for level = 1, 3 do
      if redis.call('EXISTS', base .. 'queue:' .. level .. ':' .. agent) == 1 then return end
    end
    redis.call('ZREM', base .. 'agenda', agent)
  end
end

-- take_back puts a task whose run is no more in its place again, with one more crash if its process died under a fence, or as what
-- it was replaced by.
local function take_back(agent, live, id, member, due, died_under)
  local ref = agent .. ':' .. id
  local order = redis.call('HGET', base .. 'orders', ref) or ''
  if order == ORDER_TAKEN then redis.call('HSET', base .. 'orders', ref, ORDER_RUN) end
  if byte(order) == byte(ORDER_REPLACE) then
    redis.call('HDEL', base .. 'orders', ref)
    due = tonumber(sub(order, 2, 14))
    local key = redis.call('HGET', base .. 'awaits', ref) -- what it was waited for a signal
    if key then redis.call('HDEL', base .. 'awaits', ref) end
    if key then redis.call('HDEL', base .. 'awaits:' .. agent .. ':' .. key, id) end
    redis.call('HSET', base .. 'state', ref, state_.of_now(#order > 14 and sub(order, 15) or '\0'))
    redis.call('HDEL', base .. 'suspects', ref)
  elseif died_under then
    local state = redis.call('HGET', base .. 'state', ref) or '\0'
    redis.call('HSET', base .. 'state', ref, state_.of_now(string.char(math.min(byte(state) + 1, 255)) .. sub(state, 2)))
    redis.call('HSET', base .. 'suspects', ref, died_under)
  else
    state_.touch(ref)
  end
  place(agent, member, live, id, due)
end

-- unhold ends a hold; claims put back what is parked under it. What it places is written by placed.
local function unhold(scope)
  redis.call('ZREM', base .. 'leases', HELD .. scope)
  if byte(scope) == byte(SCOPE_LIMIT) then -- there is room for another start
    if redis.call('HEXISTS', base .. 'lines', sub(scope, 3)) == 1 then
      redis.call('ZADD', base .. 'open', 'NX', now, scope)
      front.hurry(now)
    end
    return true
  end
  if redis.call('HDEL', base .. 'holds', scope) == 0 then return false end
  if byte(scope) == byte(SCOPE_TASK) then
    local ref = sub(scope, 3)
    local agent, id = string.match(ref, '^([^:]*):(.*)$')
    local live, member = find(agent, redis.call('HGET', base .. 'agents', agent), id)
    if live then state_.touch(ref) end
    local due = live and redis.call('ZSCORE', base .. 'parked:' .. HELD_TASKS, ref)
    if due then
      lift(agent, id, live, member, IS_PARKED, HELD_TASKS)
      place(agent, member, live, id, due)
    end
  elseif redis.call('EXISTS', base .. 'parked:' .. HELD .. scope) == 1 then
    redis.call('ZADD', base .. 'open', 'NX', now, scope)
    front.hurry(now)
  end
  return true
end
