-- tasks: live tasks, how they are found, placed and counted.
-- needs: layout alone

-- ticks takes n numbers of the partition's hybrid clock: they only grow, and n // 1024 is the time in ms. They are larger
-- than one that a caller has seen, which this server may have lost in a failover.
-- rule: fence-grows
local function ticks(n, seen)
  local last = tonumber(redis.call('HGET', base .. 'counters', 'clock')) or 0
  local first = math.max(last + 1, now * 1024, (seen or 0) + 1)
  redis.call('HSET', base .. 'counters', 'clock', string.format('%.0f', first + n - 1))
  return first
end

-- A live task has its id and its kind within MOST_HEAD bytes: whoever wants these only copies no large body.
local MOST_HEAD = 2048

-- parse returns the id and the kind of a live task; nil if it is not one that we wrote.
local function parse(live)
  local high, low = byte(live, 9, 10)
  if not low then return nil end
  local n = high * 256 + low
  local k = byte(live, 11 + n)
  if not k or #live < 13 + n + k then return nil end
  return sub(live, 11, 10 + n), sub(live, 12 + n, 11 + n + k)
end

local function inline(id, record)
  return string.char(math.floor(#id / 256), #id % 256) .. id .. record
end

local function outline(value)
  local high, low = byte(value, 1, 2)
  local n = low and high * 256 + low or 0
  return sub(value, 3, 2 + n), sub(value, 3 + n)
end

-- ended_at is when the task of a finished record ended; 0, which is long ago, if it is not one that we wrote.
local function ended_at(record)
  return tonumber(sub(record, 2, 14)) or 0
end

-- class_of is the list of ends that a record is in, without its agent.
local function class_of(record)
  return byte(record) == byte(FAILED) and 'dead:' or 'ends:'
end

-- What has 4 KiB or more weighs, in whole KiB; weigh adds to what stands under a name.
local function weight(n) return n >= LARGE_BODY and math.floor(n / 1024) or 0 end
local function weigh(name, kib)
  if kib ~= 0 and redis.call('HINCRBY', base .. 'bytes', name, kib) <= 0 then redis.call('HDEL', base .. 'bytes', name) end
end

-- heft is what the body of a record weighs that has `at` bytes before its level.
local function heft(record, at)
  if #record < LARGE_BODY then return 0 end
  local high, low = byte(record, at + 2, at + 3)
  local n = high * 256 + low
  local k = byte(record, at + 4 + n) or 0
  high, low = byte(record, at + 5 + n + k, at + 6 + n + k)
  return low and weight(#record - at - 6 - n - k - high * 256 - low) or 0
end

-- first_of takes the value of an 'F' agent apart: its first task or '', and where the names of the others begin.
local function first_of(value)
  local high, low = byte(value, 4, 5)
  if not low then return '', #value + 1 end -- not what we wrote
  local last = 5 + high * 256 + low
  return sub(value, 6, last), last + 1
end

-- few_of puts one together.
local function few_of(level, n, first, others)
  return FEW .. level .. string.char(n, math.floor(#first / 256), #first % 256) .. first .. others
end

-- name_of is what the value of an 'F' agent says of one of the others.
local function name_of(seq, id) return seq .. string.char(math.floor(#id / 256), #id % 256) .. id end

-- names_of lists what it says of all: seq and id in turn.
local function names_of(value)
  local _, at = first_of(value)
  local names_ = {}
  while at < #value do
    local high, low = byte(value, at + 7, at + 8)
    if not low then break end
    local last = at + 8 + high * 256 + low
    names_[#names_ + 1], names_[#names_ + 2] = sub(value, at, at + 6), sub(value, at + 9, last)
    at = last + 1
  end
  return names_
end

-- find returns the live task, and its member in the agenda if it is there by itself, false if it waits in a queue; agent is the
-- agent's value in agents. What has the agent's own name is held inline.
local function find(agent, value, id)
  if not value then return nil end
  local form = byte(value)
  if form ~= byte(QUEUED) then
    local live = form == byte(INLINE) and sub(value, 2) or form == byte(FEW) and first_of(value) or ''
    if parse(live) == id then return live, agent end
    if form ~= byte(FEW) then return nil end
  end
  local live = redis.call('HGET', base .. 'tasks', agent .. ':' .. id)
  return live, form == byte(FEW) and live and agent .. ':' .. sub(live, 1, 7) .. id
end

-- What is to be stored is gathered first, so that each key is written once; placed writes it.
local agenda_adds, agenda_rems, queue_adds, task_adds, heft_adds, group_sets, pending = {}, {}, {}, {}, {}, {}, {}
local function queue(agent, level, entry, due)
  local key = base .. 'queue:' .. level .. ':' .. agent
  local q = queue_adds[key]
  if not q then
    q = {}
    queue_adds[key] = q
  end
  q[#q + 1] = due
  q[#q + 1] = entry
end

-- Who has to know of what comes in front of what was looked at. It is a table as a script may have 200 locals and no more.
local front = { urgent = math.huge } -- when the first task of level 1 is due that is placed here

-- overtakes notes a member of the agenda that came in front of others, for the claim that puts it into a lane.
-- rule: tenants
function front.overtakes(member, due)
  -- guard: lanes-late
  if tonumber(due) < now and redis.call('EXISTS', base .. 'laned') == 1 then redis.call('HSET', base .. 'laned', member, '') end
end

-- hurry wakes those who have slots for tasks of level 1 alone, and wait longer before they ask for these.
-- rule: urgent-wakes
function front.hurry(due)
  local till = redis.call('GET', base .. 'urgent')
  if till and due < tonumber(till) then
    redis.call('DEL', base .. 'urgent')
    redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. ' 3') -- a time that nothing is due at
  end
end

-- place puts a task among the waiting ones.
local function place(agent, member, live, id, due)
  -- guard: urgent-announced
  if byte(live, 8) == byte('1') then front.urgent = math.min(front.urgent, tonumber(due)) end
  agenda_adds[#agenda_adds + 1] = due
  agenda_adds[#agenda_adds + 1] = member or agent
  if member then pending[member] = due else queue(agent, sub(live, 8, 8), sub(live, 1, 7) .. id, due) end
end

local function placed()
  for i = 1, #agenda_adds, 2 do front.overtakes(agenda_adds[i + 1], agenda_adds[i]) end
  if #task_adds > 0 then redis.call('HSET', base .. 'tasks', unpack(task_adds)) end
  -- Many agents may leave the agenda at once, each with all that it has there.
  for i = 1, #agenda_adds, 1000 do redis.call('ZADD', base .. 'agenda', 'LT', unpack(agenda_adds, i, math.min(i + 999, #agenda_adds))) end
  for i = 1, #agenda_rems, 1000 do redis.call('ZREM', base .. 'agenda', unpack(agenda_rems, i, math.min(i + 999, #agenda_rems))) end
  for key, q in pairs(queue_adds) do redis.call('ZADD', key, unpack(q)) end
  for agent, kib in pairs(heft_adds) do weigh(agent, kib) end
  if #group_sets > 0 then redis.call('HSET', base .. 'groups', unpack(group_sets)) end
  if front.urgent < math.huge then
    front.hurry(front.urgent)
    front.urgent = math.huge
  end
  agenda_adds, agenda_rems, queue_adds, task_adds, heft_adds, group_sets, pending = {}, {}, {}, {}, {}, {}, {}
end

-- member_of is the member in the agenda of a task that is not held inline; false if it waits in a queue.
local function member_of(agent, value, live, id)
  return byte(value) == byte(FEW) and agent .. ':' .. sub(live, 1, 7) .. id
end

-- members_of lists the members of an agent in the agenda that may be there.
local function members_of(agent, value)
  local members = { agent }
  if value and byte(value) == byte(FEW) then
    local names_ = names_of(value)
    for i = 1, #names_, 2 do members[#members + 1] = agent .. ':' .. names_[i] .. names_[i + 1] end
  end
  return members
end

-- next_of is when an agent is in the agenda next; nil if it is not.
local function next_of(agent, value)
  local first = nil
  for _, due in ipairs(redis.call('ZMSCORE', base .. 'agenda', unpack(members_of(agent, value)))) do
    if due and (not first or tonumber(due) < tonumber(first)) then first = due end
  end
  return first
end

-- count_of is how many live tasks an agent has, 0 if its value is not one that we wrote.
local function count_of(value)
  if not value then return 0 end
  local form = byte(value)
  if form == byte(FEW) then return byte(value, 3) or 0 end
  if form == byte(QUEUED) then return tonumber(sub(value, 3)) or 0 end
  return form == byte(INLINE) and parse(sub(value, 2, 1 + MOST_HEAD)) and 1 or 0
end

-- hold stores a task that is not held inline.
local function hold(agent, live, id)
  task_adds[#task_adds + 1] = agent .. ':' .. id
  task_adds[#task_adds + 1] = live
  if #live >= LARGE_BODY then heft_adds[agent] = (heft_adds[agent] or 0) + heft(live, 7) end
end

-- enroll keeps which group a task is counted in; '' for none any more.
local function enroll(agent, live, id, group)
  group_sets[#group_sets + 1] = agent .. ':' .. id
  group_sets[#group_sets + 1] = sub(live, 1, 7) .. group
end

-- NEW is the value of an agent that is to have queues and has no task yet.
local NEW = 'M00'

-- grown is the value of an 'M' agent with n more tasks, at a level.
local function grown(value, level, n)
  local mask, bit = tonumber(sub(value, 2, 2)), 2 ^ (level - 1)
  if math.floor(mask / bit) % 2 == 0 then mask = mask + bit end
  return QUEUED .. mask .. (tonumber(sub(value, 3)) + n)
end

-- spread makes an 'S' or an 'F' agent one that has queues, with what it has but for a task that is taken out.
local function spread(agent, value, without)
  local inline_, names_, n, level = sub(value, 2), {}, 1, nil
  if byte(value) == byte(FEW) then
    inline_, names_, n = first_of(value), names_of(value), byte(value, 3)
  end
  local id = parse(inline_)
  level = id and sub(inline_, 8, 8) or sub(value, 2, 2)
  if id and id ~= without then
    hold(agent, inline_, id)
    local due = pending[agent] or redis.call('ZSCORE', base .. 'agenda', agent)
    if due then queue(agent, level, sub(inline_, 1, 7) .. id, due) end
  end
  for i = 1, #names_, 2 do
    local member = agent .. ':' .. names_[i] .. names_[i + 1]
    local due = pending[member] or redis.call('ZSCORE', base .. 'agenda', member)
    if due then agenda_rems[#agenda_rems + 1] = member end
    if due and names_[i + 1] ~= without then
      -- guard: spread-queue
      queue(agent, level, names_[i] .. names_[i + 1], due)
      agenda_adds[#agenda_adds + 1] = due
      -- guard: spread-agenda
      agenda_adds[#agenda_adds + 1] = agent
    end
  end
  return grown(NEW, tonumber(level), n)
end

-- added is the value of an agent that has one more task, which is stored, and the member of that in the agenda; false if it waits
-- in a queue. An agent has up to `few` tasks in the agenda.
-- rule: few-in-the-agenda
local function added(agent, value, live, id, few)
  local small, level = heft(live, 7) == 0, sub(live, 8, 8)
  local alone = small and not value
  -- guard: long-alone
  -- rule: long-alone
  if alone and (few < 2 or #live < INLINE_MOST + 7) then return INLINE .. live, agent end
  hold(agent, live, id)
  if alone then return few_of(level, 1, '', name_of(sub(live, 1, 7), id)), agent .. ':' .. sub(live, 1, 7) .. id end
  local form = value and byte(value)
  if small and form == byte(INLINE) and few > 1 and sub(value, 9, 9) == level then
    return few_of(level, 2, sub(value, 2), name_of(sub(live, 1, 7), id)), agent .. ':' .. sub(live, 1, 7) .. id
  end
  if small and form == byte(FEW) and byte(value, 3) < few and sub(value, 2, 2) == level then
    return sub(value, 1, 2) .. string.char(byte(value, 3) + 1) .. sub(value, 4) .. name_of(sub(live, 1, 7), id),
      agent .. ':' .. sub(live, 1, 7) .. id
  end
  if form and form ~= byte(QUEUED) then value = spread(agent, value) end
  return grown(value or NEW, tonumber(level), 1), false
end

-- removed is the value of an agent that has a task no more; false if it was the last one. The caller takes it out of tasks, if it
-- was not held inline.
-- rule: leaves-its-agent
local function removed(agent, value, id, live)
  if byte(value) == byte(INLINE) then return false end
  if byte(value) == byte(QUEUED) then
    local left = (tonumber(sub(value, 3)) or 1) - 1
    return left > 0 and sub(value, 1, 2) .. left
  end
  local first, at = first_of(value)
  local others = sub(value, at)
  if parse(first) == id then
    first = ''
  else
    local name = name_of(sub(live, 1, 7), id)
    local from = string.find(others, name, 1, true)
    if from then others = sub(others, 1, from - 1) .. sub(others, from + #name) end
  end
  if others == '' then return first ~= '' and INLINE .. first end
  return few_of(sub(value, 2, 2), byte(value, 3) - 1, first, others)
end

-- rewritten is the value of an agent of whose tasks one has another record now, which is stored, and the member of that in the
-- agenda; false if it waits in a queue.
local function rewritten(agent, value, old, new, id, member)
  local form, small, level = byte(value), heft(new, 7) == 0, sub(new, 8, 8)
  if form == byte(INLINE) and small then return INLINE .. new, agent end
  if form == byte(FEW) and small and (sub(value, 2, 2) == level or byte(value, 3) == 1) then
    local first, at = first_of(value)
    if member == agent then return few_of(level, byte(value, 3), new, sub(value, at)), agent end
    hold(agent, new, id)
    return few_of(level, byte(value, 3), first, sub(value, at)), member
  end
  hold(agent, new, id)
  if form == byte(QUEUED) then
    if #old >= LARGE_BODY then heft_adds[agent] = (heft_adds[agent] or 0) - heft(old, 7) end
    return grown(value, tonumber(level), 0), false
  end
  return grown(spread(agent, value, id), tonumber(level), 0), false
end

-- wake tells whoever sleeps that the partition has work at a time.
local function wake(due)
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. string.format(' %.0f', due))
end

-- announce keeps `due` no later than what was placed and wakes whoever sleeps past it, unless its caller knows.
-- rule: wakes
local function announce(due, known)
  local found = redis.call('MGET', base .. 'due', base .. 'watched')
  local hint = found[1] or ''
  listened = found[2] or listened
  if (tonumber(hint) or math.huge) <= due then return end -- no kind is parked, mostly
  local ms, kinds = string.match(hint, '^(%d*)(.*)$')
  if ms ~= '' and tonumber(ms) <= due then return end
  redis.call('SET', base .. 'due', string.format('%.0f', due) .. kinds)
  if not known then wake(due) end
end

local function count(field, n)
  if n ~= 0 then redis.call('HINCRBY', base .. 'counters', field, n) end
end

-- The counters of kinds are gathered first too: how many more are live, or run.
local more_live, more_running = {}, {}
local function more(of, kind, n) of[kind] = (of[kind] or 0) + n end

local function counted()
  for kind, n in pairs(more_live) do
    if n ~= 0 then redis.call('HINCRBY', base .. 'kinds', COUNT_LIVE .. kind, n) end
  end
  for kind, n in pairs(more_running) do
    if n ~= 0 then redis.call('HINCRBY', base .. 'kinds', COUNT_RUNNING .. kind, n) end
  end
end

-- unprobed lets another run be the first that asks again, after one that has found nothing out.
local function unprobed(bucket)
  local text, n = string.gsub(redis.call('HGET', base .. 'learned', bucket) or '', '^([^|]*|[^|]*|[^|]*|[^|]*|[^|]*)|2|', '%1|1|')
  if n == 1 then redis.call('HSET', base .. 'learned', bucket, text) end
end

-- unreserve gives back what budgets have kept for a run.
local function unreserve(ref)
  local kept = redis.call('HGET', base .. 'reserves', ref)
  if not kept then return end
  redis.call('HDEL', base .. 'reserves', ref)
  for amount, bucket in string.gmatch(kept, '([%d?]+) ([^\n]+)') do
    local all, untried = string.match(redis.call('HGET', base .. 'reserved', bucket) or '', '^(%d+)|(%d+)$')
    if all then -- else none of its runs is under way
      -- guard: unreserve
      if amount == '?' then untried = math.max(untried - 1, 0) else all = math.max(all - amount, 0) end
      redis.call('HSET', base .. 'reserved', bucket, string.format('%.0f|%.0f', all, untried))
    end
  end
end

-- unuse gives back what a run that has ended had of limits: to `ended` are added the buckets that it counted in, each with how many
-- runs it had. It returns whether somebody waits for that, whom the next claim serves.
local USES, opened = nil, false
local given_back = {} -- buckets that span partitions: their homes have to be told
local function unuse(ref, ended)
  if USES == nil then
    USES = redis.call('EXISTS', base .. 'uses') == 1 and { granted = redis.call('EXISTS', base .. 'granted') == 1, charged = redis.call('EXISTS', base .. 'charged') == 1 }
  end
  local buckets = USES and redis.call('HGET', base .. 'uses', ref)
  if not buckets then return end
  redis.call('HDEL', base .. 'uses', ref)
  local wanted = false
  for bucket in string.gmatch(buckets, '[^\n]+') do
    local runs = redis.call('HINCRBY', base .. 'flight', bucket, -1)
    if runs <= 0 then redis.call('HDEL', base .. 'flight', bucket) end
    if runs <= 0 and string.find(bucket, '$', 1, true) then redis.call('HDEL', base .. 'reserved', bucket) end
    if USES.granted and redis.call('HEXISTS', base .. 'granted', bucket) == 1 then given_back[#given_back + 1] = bucket end
    if ended then ended[#ended + 1] = { bucket, runs + 1 } else unprobed(bucket) end
    if redis.call('HEXISTS', base .. 'lines', bucket) == 1 then
      redis.call('ZADD', base .. 'open', 'NX', now, SCOPE_LIMIT .. bucket)
      front.hurry(now) -- there may be one of level 1 among those that wait
      opened, wanted = true, true
    end
  end
  if string.find(buckets, '$', 1, true) then
    unreserve(ref)
    if USES.charged then
      if ended then ended.charged = redis.call('HGET', base .. 'charged', ref) end
      redis.call('HDEL', base .. 'charged', ref)
    end
  end
  return wanted
end

-- rested counts tasks of a kind that rest; it is rare enough to be written at once.
local function rested(kind, n)
  redis.call('HINCRBY', base .. 'kinds', COUNT_RESTING .. kind, n)
  count('rests', 1) -- for an audit, which has to see that something has changed
end

-- What a state says besides what is opaque: see layout. It is a table as a script may have 200 locals and no more.
local state_ = {}
function state_.begins(state)
  local said = sub(state, 2, 3)
  return said == SINCE .. '\6' and 10 or said == SINCE .. '\19' and 23 or 2
end
function state_.opaque(state) return sub(state, state_.begins(state)) end

-- of_now is a state, behind its crashes, of a task that has changed now. Which of a run's states it is stays known.
-- rule: state-since
function state_.of_now(state)
  local from = state_.begins(state)
  local numbered = from == 23 and sub(state, 10, 22) or ''
  return sub(state, 1, 1) .. SINCE .. struct.pack('>BI6', 6 + #numbered, now) .. numbered .. sub(state, from)
end

-- touch notes that a task has changed now in what its state does not say.
function state_.touch(ref) redis.call('HSET', base .. 'state', ref, state_.of_now(redis.call('HGET', base .. 'state', ref) or '\0')) end

-- dozing says whether a pulse is that of a task whose rest is counted.
local function dozing(pulse) return pulse and string.find(pulse, '^%d*|[^|]*|00|') end

-- tally_of reads the counters of runs of a kind: zeros, and false, if they are not what we wrote.
local function tally_of(text)
  local whole, o = pcall(cmsgpack.unpack, text or '')
  local right = whole and type(o) == 'table' and #o == 11
  for i = 1, right and 11 or 0 do right = right and type(o[i]) == 'number' end
  return right and o or { 0, 0, 0, math.huge, 0, 0, 0, 0, 0, 0, 0 }, right
end

-- join adds n live tasks to a group; one whose tasks have all been over for the retention begins anew.
local function join(group, n)
  local key = base .. 'group:' .. group
  local over = redis.call('HGET', key, 'over')
  if over and tonumber(over) <= now then redis.call('DEL', key) end
  redis.call('HINCRBY', key, 'live', n)
  redis.call('HSET', base .. 'groups', GROUP_LIVE .. group, 1)
  if over then
    redis.call('HDEL', key, 'over')
    redis.call('PERSIST', key)
  end
end
