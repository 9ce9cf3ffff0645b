-- order: an operator's command for one task.
-- needs: look ended holds signals finished known grouped answers withdraw
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] claims
-- KEYS[4] leases
-- KEYS[5] finished
-- ARGV[1] command: run, cancel or delete
-- ARGV[2] agent
-- ARGV[3] id
-- ARGV[4] group key or '', as the caller takes it: see group_of
-- ARGV[5] retention of finished records, ms
-- ARGV[6] most finished records of an agent, of those that failed and of the others, and KiB of large ones, with a | between
-- ARGV[7] run: 1 if a task that runs is to be due once more; cancel: the version that the record is of
-- ARGV[8] cancel: the record
-- ARGV[9] cancel: what is said to a run under way
-- returns {now, 0 nothing to change, 1 done, 2 the change comes when its run ends, 3 it runs, 4 it has changed, 5 it was
--          cancelled and ends or 6 everything is held, due}

redis.call('ZREM', KEYS[1], '') -- the first write must be one that is allowed when memory is full: a run can be ended then
local command, agent, id, group = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local retention, most = tonumber(ARGV[5]), ARGV[6]
local repeats, version = ARGV[7] == '1', ARGV[7] -- of run and of cancel
local record_, said = ARGV[8], ARGV[9]
local ref = agent .. ':' .. id
-- The answers.
local NONE = 0
local DONE = 1
local AT_THE_END = 2
local RUNS = 3
local CHANGED = 4
local ENDING = 5
local STOPPED = 6
local value = redis.call('HGET', KEYS[2], agent)
local live, member = find(agent, value, id)
local place_, due, name = IS_RUNNING, 0, nil
if live then
  place_, due, name = where(agent, id, live, member)
  group = group_of(agent, id, live, group)
end

-- overruling is when an order to run is given: no sooner than the holds that it overrules, also within the millisecond of one of them, or
-- by a clock that was put back.
local function overruling(agent, id, live)
  local at = math.max(now, tonumber(redis.call('HGET', base .. 'counters', 'ordered') or 0))
  for _, value in ipairs(redis.call('HMGET', base .. 'holds', unpack(scopes(agent, id, live)))) do
    if value then at = math.max(at, tonumber(sub(value, 14, 26))) end
  end
  return at
end

local function run()
  if not live then return NONE, 0 end
  local order = redis.call('HGET', base .. 'orders', ref)
  if order and byte(order) == byte(ORDER_CANCEL) then return ENDING, 0 end
  if place_ == IS_RUNNING then
    if not repeats then return RUNS, 0 end
    state_.touch(ref)
    if not order or order == ORDER_TAKEN then redis.call('HSET', base .. 'orders', ref, ORDER_REPEAT) end
    if order and byte(order) == byte(ORDER_REPLACE) then
      local at = math.min(tonumber(sub(order, 2, 14)), now)
      redis.call('HSET', base .. 'orders', ref, ORDER_REPLACE .. string.format('%013.0f', at) .. sub(order, 15))
    end
    return AT_THE_END, 0
  end
  if stopped() then return STOPPED, 0 end -- claims look at nothing then: the order would wait for the end of that
  if hold_of(agent, id, live) then
    local at = overruling(agent, id, live)
    redis.call('HSET', base .. 'orders', ref, ORDER_RUN, ORDERED .. ref, at)
    redis.call('HSET', base .. 'counters', 'ordered', at)
  end
  if place_ == IS_PARKED or due > now then
    due = now
    lift(agent, id, live, member, place_, name)
    place(agent, member, live, id, due)
    placed()
    announce(due)
  end
  rouse(ref, live)
  state_.touch(ref)
  return DONE, due
end

-- drop takes a task that waits or runs no more out of its agent.
local function drop()
  local _, kind = parse(live)
  if member ~= agent then
    redis.call('HDEL', base .. 'tasks', ref)
    weigh(agent, -heft(live, 7))
  end
  local left = removed(agent, value, id, live)
  if left then
    redis.call('HSET', KEYS[2], agent, left)
  else
    redis.call('HDEL', KEYS[2], agent)
    redis.call('HDEL', base .. 'bytes', agent)
  end
  forget({ ref }, { kind })
  more(more_live, kind, -1)
  counted()
  count('live', -1)
  if group ~= '' then leave(group, 1, retention) end
end

local function cancel()
  if not live then return NONE, 0 end
  if place_ == IS_RUNNING then
    local order = redis.call('HGET', base .. 'orders', ref)
    if not order or byte(order) ~= byte(ORDER_CANCEL) then
      redis.call('HSET', base .. 'orders', ref, ORDER_CANCEL .. said)
      withdraw()
      state_.touch(ref)
    end
    return AT_THE_END, 0
  end
  local state = redis.call('HGET', base .. 'state', ref) or ''
  if redis.sha1hex(sub(live, 8) .. '\0' .. state_.opaque(state)) ~= version then return CHANGED, 0 end
  lift(agent, id, live, member, place_, name)
  drop()
  recall({ agent })
  remember(agent, id, CANCELLED .. string.format('%013.0f', now) .. record_, retention)
  remembered(most, retention)
  if group ~= '' then redis.call('HINCRBY', base .. 'group:' .. group, 'cancelled', 1) end
  count('cancelled', 1)
  return DONE, 0
end

-- stop takes a task from the claim that holds it.
local function stop()
  for _, fence in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    local found = redis.call('HMGET', KEYS[3], fence, fence .. CLAIM_REFS)
    local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
    if not whole or not found[1] then refs = {} end -- not what we wrote: a claim takes it away
    for i = 1, #refs / 3 do
      if refs[3 * i - 2] == agent and refs[3 * i - 1] == id and byte(found[1], i) == byte(RUNNING) then
        local marks = sub(found[1], 1, i - 1) .. LOST .. sub(found[1], i + 1)
        local _, kind = parse(live)
        more(more_running, kind, -1)
        count('running', -1)
        unuse(ref)
        if string.find(sub(marks, 1, -17), RUNNING, 1, true) then
          redis.call('HSET', KEYS[3], fence, marks)
        else
          close(fence, marks)
        end
        return fence
      end
    end
  end
end

local function delete()
  local effect = NONE
  -- guard: output-deleted-on-redis
  redis.call('DEL', base .. 'output:0:' .. ref, base .. 'output:1:' .. ref)
  redis.call('ZREM', base .. 'printed:' .. agent, '0:' .. id, '1:' .. id)
  local kept = redis.call('HGET', KEYS[5], agent)
  local record = recorded(agent, kept, id)
  if record then
    if ended_at(record) > now - retention then effect = DONE end
    unrecord(agent, kept, id, record)
  end
  local dropped_ = end_of(redis.call('ZSCORE', base .. 'gone', ref), retention)
  if dropped_ then
    redis.call('ZREM', base .. 'gone', ref)
    effect = DONE
  end
  if not live then return effect, 0 end
  local held = nil
  if place_ == IS_RUNNING then
    held = stop()
    withdraw()
  else
    lift(agent, id, live, member, place_, name)
  end
  drop()
  if held then free(agent, held) end
  count('deleted', 1)
  return DONE, 0
end

local effect, at = ({ run = run, cancel = cancel, delete = delete })[command]()
if effect == DONE then look() end
if opened then wake(now) end
local reply = { now, effect, at }
return (effect == DONE or effect == AT_THE_END) and kept_answer(reply) or reply
