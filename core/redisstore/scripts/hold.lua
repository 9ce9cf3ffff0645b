-- hold: begin or end a hold: none of the tasks of its scope is claimed while it lasts.
-- needs: look holds answers withdraw
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] leases
-- KEYS[4] holds
-- ARGV[1] hold, unhold, or prolong: hold, unless it is held for as long or longer
-- ARGV[2] scope
-- ARGV[3] when it ends: ms, or minus a delay in ms; 0 for never
-- ARGV[4] who and why
-- returns {now, 1, or 0 when there was nothing to change, until when tasks begin that were claimed ahead of their time}

local command, scope, till, said = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if till < 0 then till = now - till end

if command == 'unhold' then
  local ended = unhold(scope)
  placed()
  if ended then
    look()
    wake(now)
    return kept_answer({ now, 1 })
  end
  return { now, 0 }
end

local waits = false -- it is one task, which no claim has
if byte(scope) == byte(SCOPE_TASK) then
  local agent, id = string.match(scope, '^t:([^:]*):(.*)$')
  local live, member = find(agent, redis.call('HGET', KEYS[2], agent), id)
  if not live then return { now, 0 } end
  waits = where(agent, id, live, member) ~= IS_RUNNING
end
local old = redis.call('HGET', KEYS[4], scope)
if command == 'prolong' and lasting(old) then
  local last = tonumber(sub(old, 1, 13))
  if last == 0 or till > 0 and last >= till then return { now, 0 } end
end
-- Who pauses again pauses what was told to run meanwhile too; what is only prolonged has lasted since it began.
-- It begins later than every order to run that was given before, also within the same millisecond.
-- guard: pause-again
local since = command == 'prolong' and lasting(old) and sub(old, 14, 26)
  or string.format('%013.0f', math.max(now, (redis.call('HGET', base .. 'counters', 'ordered') or 0) + 1))
redis.call('ZREM', base .. 'open', scope) -- what was not put back yet stays where it is
redis.call('HSET', KEYS[4], scope, string.format('%013.0f', till) .. since .. said)
if till > 0 then redis.call('ZADD', KEYS[3], till, HELD .. scope) else redis.call('ZREM', KEYS[3], HELD .. scope) end
if byte(scope) == byte(SCOPE_TASK) then state_.touch(sub(scope, 3)) end
look()
return kept_answer({ now, 1, waits and 0 or withdraw() })
