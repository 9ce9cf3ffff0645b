-- replan: give a waiting task another due time, and the state that says why, if it is as the caller has seen it.
-- needs: look holds answers
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] state
-- KEYS[4] orders
-- ARGV[1] agent
-- ARGV[2] id
-- ARGV[3] its version as the caller has seen it
-- ARGV[4] when it was due then, ms
-- ARGV[5] when it is to be due, ms
-- ARGV[6] state or ''; its crashes stay counted
-- returns {now, 0 no such task, 1 done, 3 it runs or has an order, 4 it has changed, due}

local NONE = 0
local DONE = 1
local RUNS = 3
local CHANGED = 4
local agent, id, version, was, due, opaque = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local ref = agent .. ':' .. id
local live, member = find(agent, redis.call('HGET', KEYS[2], agent), id)
if not live then return { now, NONE, 0 } end
local place_, at, name = where(agent, id, live, member)
if place_ == IS_RUNNING or redis.call('HEXISTS', KEYS[4], ref) == 1 then return { now, RUNS, 0 } end
local old = redis.call('HGET', KEYS[3], ref) or ''
if at ~= was or redis.sha1hex(sub(live, 8) .. '\0' .. state_.opaque(old)) ~= version then return { now, CHANGED, 0 } end
redis.call('ZREM', base .. 'leases', '') -- the first write must be one that is allowed when memory is full
redis.call('HSET', KEYS[3], ref, state_.of_now((old == '' and '\0' or sub(old, 1, 1)) .. opaque))
lift(agent, id, live, member, place_, name)
place(agent, member, live, id, due)
placed()
announce(due) -- first: look notes when the next is due, and nobody would be woken then
look()
return kept_answer({ now, DONE, due })
