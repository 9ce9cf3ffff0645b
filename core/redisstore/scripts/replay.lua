-- replay: put dead tasks back in the queue, as new.
-- needs: known answers quota
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] finished
-- ARGV[1] retention of finished records, ms
-- ARGV[2] how many tasks an agent may have in the agenda
-- ARGV[3..] 7 for each task: agent, id, record, group key or '', state or '', 1 if it is an activity task or '', how it counts for the quota of its
--           agent, as in submit, or ''
-- returns {now, for each task: its due time, 0 when no dead task has that id, or what a quota says (see quota)}

local reply, replayed = { now }, 0
local oldest, few = now - tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV, 7 do
  local agent, id, record, group, state, activity, flag = unpack(ARGV, i, i + 6)
  local kept = redis.call('HGET', KEYS[3], agent)
  local ended = recorded(agent, kept, id)
  local value = redis.call('HGET', KEYS[2], agent)
  local dead = ended and byte(ended) == byte(FAILED) and ended_at(ended) > oldest and not find(agent, value, id)
  local against = dead and flag ~= '' and quota.one(agent, value, id, record, flag)
  -- guard: quota-replay-on-redis
  if against then
    reply[#reply + 1] = against
  elseif dead then
    local live = struct.pack('>I7', ticks(1)) .. record
    local left, member = added(agent, value, live, id, few)
    place(agent, member, live, id, now)
    redis.call('HSET', KEYS[2], agent, left)
    if state ~= '' then redis.call('HSET', base .. 'state', agent .. ':' .. id, state) end
    if activity ~= '' then
      redis.call('HSET', base .. 'pulse', agent .. ':' .. id, string.format('0||%.0f|0|0', now))
    end
    more(more_live, select(2, parse(live)), 1)
    if group ~= '' then enroll(agent, live, id, group) end
    placed()
    unrecord(agent, kept, id, ended)
    if group ~= '' then
      join(group, 1)
      redis.call('HINCRBY', base .. 'group:' .. group, 'failed', -1)
    end
    replayed = replayed + 1
    reply[#reply + 1] = now
  else
    reply[#reply + 1] = 0
  end
end
if replayed > 0 then
  count('live', replayed)
  count('replayed', replayed)
  counted()
  announce(now)
  kept_answer(reply)
end
return reply
