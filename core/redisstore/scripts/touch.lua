-- touch: note that something happened for the subjects of activity tasks, and book their runs.
-- needs: look holds known answers quota
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] pulse
-- ARGV[1] most live tasks an agent may have, KiB of large ones, and how many may be in the agenda, with a | between
-- ARGV[2..] 7 for each touch: agent, id, record, group key or '', quiet time in ms, longest in ms to debounce or '', and if it is bound by the quota of
--           its agent 2 and the mark of the quota that it was checked by, else ''
-- returns {now, for each touch: 1 a run was booked, 0 one was already, -1 over the limit, -4 of bytes, or what a quota says (see quota); its due time or 0; reason}

-- The answers.
local OVER = -1
local HEAVY = -4
local most, heaviest, few = string.match(ARGV[1], '^(%d+)|(%d+)|(%d+)$')
most, heaviest, few = tonumber(most), tonumber(heaviest), tonumber(few)
local reply, created, earliest, changed = { now }, 0, nil, false
local function answer(booked, due, reason)
  changed = changed or booked == 1
  reply[#reply + 1] = booked
  reply[#reply + 1] = due
  reply[#reply + 1] = reason
  if due > 0 and (not earliest or due < earliest) then earliest = due end
end

-- heavier says whether an agent would have too many bytes with a task.
local function heavier(agent, value, record)
  local kib = heft(record, 0)
  if kib == 0 then return false end
  local have = value and (byte(value) == byte(INLINE) and heft(value, 8) or tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)) or 0
  return have + kib > heaviest
end

local function keep(ref, floor, reason, first, from, to, as)
  redis.call('HSET', KEYS[4], ref, string.format('%.0f|%s|' .. (as or '%.0f') .. '|%.0f|%.0f|%.0f', floor, reason, first, from, to, now))
end

local function create(agent, value, id, record, group, due)
  local live = struct.pack('>I7', ticks(1)) .. record
  local kept = redis.call('HGET', base .. 'finished', agent)
  local old = recorded(agent, kept, id)
  if old then unrecord(agent, kept, id, old) end
  local left, member = added(agent, value, live, id, few)
  place(agent, member, live, id, due)
  redis.call('HSET', KEYS[2], agent, left)
  if group ~= '' then enroll(agent, live, id, group) end
  placed()
  keep(agent .. ':' .. id, 0, '', now, 0, 0)
  if group ~= '' then join(group, 1) end
  more(more_live, select(2, parse(live)), 1)
  created = created + 1
  answer(1, due, 'activity')
end

-- rebodied is a task with the body of a record; what says where the task is, its level, kind and key, stays.
local function body_at(live)
  local id, kind = parse(live)
  return 14 + #id + #kind + #key_of(live)
end

local function rebodied(live, record)
  local new = sub(live, 1, 7) .. record
  return sub(live, 1, body_at(live) - 1) .. sub(new, body_at(new))
end

-- move gives a task another due time where it is.
local function move(agent, id, live, member, place_, name, due)
  if byte(live, 8) == byte('1') then front.hurry(due) end
  if place_ == IS_PARKED and name == berth(agent) then -- what waits in line is taken whenever there is room
    lift(agent, id, live, member, place_, name)
    place(agent, member, live, id, due)
    placed()
  elseif place_ == IS_PARKED then
    redis.call('ZADD', base .. 'parked:' .. name, due, agent .. ':' .. id)
  elseif member then
    redis.call('ZADD', KEYS[1], due, member)
    front.overtakes(member, due)
  else
    redis.call('ZADD', base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent, due, sub(live, 1, 7) .. id)
    redis.call('ZADD', KEYS[1], 'LT', due, agent)
    front.overtakes(agent, due)
  end
end

for i = 2, #ARGV, 7 do
  local agent, id, record, group, quiet, most_quiet, bound = unpack(ARGV, i, i + 6)
  local delay, longest, ref = tonumber(quiet), tonumber(most_quiet), agent .. ':' .. id
  local value = redis.call('HGET', KEYS[2], agent)
  local live, member = find(agent, value, id)
  local pulse = live and redis.call('HGET', KEYS[4], ref)
  local have = count_of(value)
  if not live and have >= most then
    answer(OVER, 0, '')
  elseif not live and heavier(agent, value, record) then
    answer(HEAVY, 0, '')
  elseif not live then
    local against = bound ~= '' and quota.one(agent, value, id, record, sub(bound, 1, 1), sub(bound, 2))
    -- guard: quota-touch-on-redis
    if against then answer(against, 0, '') else create(agent, value, id, record, group, now + delay) end
  elseif not pulse then -- it was submitted as something else: it is left as it is
    local _, due = where(agent, id, live, member)
    answer(0, due, 'waiting')
  else
    -- From when to when a run was touched that has not rested yet: it may have been given back since, or its process has died.
    local floor, why, first, from, to = string.match(pulse, '^(%d*)|([^|]*)|(%d*)|(%d*)|(%d*)')
    floor, first, from, to = tonumber(floor), tonumber(first), tonumber(from), tonumber(to)
    local place_, due, name = where(agent, id, live, member)
    local reason, booked = 'waiting', 0
    if place_ == IS_RUNNING then
      keep(ref, floor, why, first, from > 0 and from or now, now, dozing(pulse) and '%02.0f')
      answer(from > 0 and 0 or 1, 0, 'running')
    else
      if first == 0 then
        booked = 1
        if dozing(pulse) then rested(select(2, parse(live)), -1) end
        local next_due = math.max(now + delay, floor)
        reason = floor > now + delay and why or 'activity'
        if next_due == due then next_due = due + 1 end -- the time at which it would have rested for long enough
        due = next_due
        local left, new, before = nil, rebodied(live, record), member
        left, member = rewritten(agent, value, live, new, id, member)
        live = new
        redis.call('HSET', KEYS[2], agent, left)
        if before and not member and place_ == IS_WAITING then redis.call('ZREM', KEYS[1], before) end -- it has a queue from now on
        placed()
        move(agent, id, live, member, place_, name, due)
        keep(ref, floor, why, now, from, to)
      else
        redis.call('ZREM', KEYS[1], '') -- the first write must be one that is allowed when memory is full
        keep(ref, floor, why, first, from, to)
        local later = longest and math.min(now + delay, first + longest)
        if later and later > due then
          due = later
          move(agent, id, live, member, place_, name, due)
        end
        if floor > now and due <= floor then reason = why end
      end
      if redis.call('EXISTS', base .. 'holds') == 1 and hold_of(agent, id, live) then reason = 'paused' end
      answer(booked, due, reason)
    end
  end
end
if created > 0 then
  count('submitted', created)
  count('live', created)
  counted()
end
if earliest then announce(earliest) end
return changed and kept_answer(reply) or reply
