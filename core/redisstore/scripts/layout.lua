-- layout: how one partition is laid out. It is put in front of every script, so that each part is spelt once; what only
-- some need is in look.lua, holds.lua, finished.lua and the like, as each call pays for all that stands in front.
--
--   agents    HASH agent -> 'S' live      an agent with one live task holds it here, whole; one whose first task is large is
--                                         an 'M' agent, so that no step has to read what it only looks at
--                        -> 'M' mask n    an agent with n live tasks: mask has a bit for each level in use
--   tasks     HASH agent:id -> live       the live tasks of 'M' agents
--   queue:L:A ZSET seq id, by due time    the waiting tasks of 'M' agent A at level L
--   agenda    ZSET agent                  when an agent is next looked at: its earliest due time, or the time of the
--                                         last visit if it had more due then (round-robin)
--   live = seq(7) level(1) #id(2) id #kind(1) kind #key(2) key body; seq orders ties and holds the time of submit
--   state     HASH agent:id -> crashes(1) opaque
--   claims    HASH fence -> a mark for each task, then the nonce(16); fence 'r' -> agent, id, due of each task
--                  'n' nonce -> fence
--   leases    ZSET fence, by the end of its lease; '@' scope, by the end of its hold
--   serial    HASH agent -> fence of the claim that holds the one task of it that may run now; what else it has waits
--                  outside the agenda
--   ended     LIST of the fences that ended last: their marks answer a settle that is sent twice
--   finished  HASH agent -> #id(2) id record, or '*': the records are in history:A (HASH id -> record)
--             record = status(1) finished ms(13) opaque
--   ends:A    LIST of the ends(6) id of history:A that completed or were cancelled, newest first: which are the oldest
--   dead:A    LIST of those that failed. Both are there only once a history has more than a few records, so that no step
--             has to look at all of a long one
--   stale     HASH 'ends:' A, 'dead:' A -> how many there have no record any more; 'scan:' A -> how far a sweep has come
--   bytes     HASH A -> KiB of the live tasks of 'M' agent A whose bodies have 4 KiB or more; 'ends:' A, 'dead:' A -> of the
--             records there that have
--   gone      ZSET agent:id, by when it ended * 4 + its verb: tasks whose record was dropped before its time. Their ids
--             stay known for KNOWN ms
--   orders    HASH agent:id -> what becomes of a task when its run ends: 'x' opaque, cancelled; 'r' due(13) state,
--             replaced; 'q', due once more. 'n' of a task that waits: it is taken though it is held, and has 'h' while it
--             runs, so that it is 'n' again if the run is given back or dies. '@' agent:id -> when 'n' was ordered, ms:
--             holds that began later hold the task all the same
--   holds     HASH scope -> until(13) since(13) opaque; scope = '*', k:kind, a:agent, s:key or t:agent:id
--   open      ZSET scope, by when its hold ended: what is parked under it is being put back
--   parked    HASH kind -> n, '@' -> n that are held; parked:K, parked:@scope, parked:@t (all t:) ZSET agent:id, by due
--   pulse     HASH agent:id of an activity task -> floor|reason|first|from|to: not due before floor; the first touch
--             that the booked run is for, 00 while it rests, 0 if its rest is not counted; the first and last touch
--             while it runs
--   kinds     HASH 'l' kind, 'r' kind, 'z' kind -> live, running, resting; 's' kind -> counters of runs (msgpack)
--   failures:K LIST at(13) opaque, newest first
--   groups    HASH agent:id -> seq(7) A:G of a task that has a group, or had one; '@' A:G of each group with live tasks -> 1
--   group:A:G HASH of counts, and when it is forgotten once nothing in it is live; counters HASH
--   recount:R HASH of what a round of an audit has counted; for some minutes: see recount.lua
--   answers   HASH caller -> nonce(8) answer (msgpack), of the last call of each that changed something: see answers.lua
--   processes HASH tag -> until(13) opaque; of the first partition only: what processes say of themselves
--   due       STRING ms of the earliest entry of agenda and leases, then '|' kind for each parked kind, or '|*' for many: a cheap look

local base = string.sub(KEYS[1], 1, -7)
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local sub, byte = string.sub, string.byte

-- Letters and marks of what is stored, each named once. Constants cost nothing: packing puts the value of a name in its place, and
-- the number of a character in that of byte(NAME).
--
-- How the value of an agent begins, and what stands for the records of one that has a history.
local INLINE = 'S'
local QUEUED = 'M'
local HISTORY = '*'
-- The mark of a task in its claim.
local RUNNING = '0'
local SETTLED = '1'
local LOST = '2'
-- The fields of a claim: behind its fence, and in front of its nonce.
local CLAIM_REFS = 'r'
local CLAIM_NONCE = 'n'
-- Where a task is.
local IS_WAITING = 'w'
local IS_RUNNING = 'r'
local IS_PARKED = 'p'
local IS_FINISHED = 'd'
local IS_DROPPED = 'g' -- finished, and its record had to make room
-- What a settlement does, as store.Verb has it; the first three are also the status of a finished record.
local COMPLETED = 'c'
local FAILED = 'f'
local CANCELLED = 'x'
local AGAIN = 'r'
local REST = 'z'
local RELEASE = 'b'
-- What an order says; ORDERED is in front of a task whose order to run has a time.
local ORDER_CANCEL = 'x'
local ORDER_REPLACE = 'r'
local ORDER_REPEAT = 'q'
local ORDER_RUN = 'n'
local ORDER_TAKEN = 'h'
local ORDERED = '@'
-- Scopes of holds; HELD is in front of one in leases and in the names of places where tasks are parked.
local SCOPE_ALL = '*'
local SCOPE_KIND = 'k:'
local SCOPE_AGENT = 'a:'
local SCOPE_KEY = 's:'
local SCOPE_TASK = 't:'
local HELD = '@'
local HELD_TASKS = '@t' -- one place for the tasks of all holds of single tasks
-- The kinds in the hint `due`: in front of each that is parked, or in place of many.
local HINT_KIND = '|'
local HINT_MANY = '|*'
-- In front of a kind in `kinds`: how many are live, run or rest, and the counters of its runs.
local COUNT_LIVE = 'l'
local COUNT_RUNNING = 'r'
local COUNT_RESTING = 'z'
local COUNT_RUNS = 's'
-- In front of a group in `groups` while it has live tasks.
local GROUP_LIVE = '@'

local ENDED_KEPT = 1000 -- ended claims whose marks still answer a settle that is sent twice
local KNOWN = 86400000 -- ms for which the id of a task is known whose record was dropped early: store.KnownFor
local LARGE_BODY = 4096 -- bytes from which on a body weighs something

-- ticks takes n numbers of the partition's hybrid clock: they only grow, and n // 1024 is the time in ms. They are larger
-- than one that a caller has seen, which this server may have lost in a failover.
local function ticks(n, seen)
  local last = tonumber(redis.call('HGET', base .. 'counters', 'clock')) or 0
  local first = math.max(last + 1, now * 1024, (seen or 0) + 1)
  redis.call('HSET', base .. 'counters', 'clock', string.format('%.0f', first + n - 1))
  return first
end

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

-- find returns the live task, and whether its agent holds it inline; agent is the agent's value in agents.
local function find(agent, value, id)
  if not value then return nil end
  if byte(value) == byte(INLINE) then
    local live = sub(value, 2)
    if parse(live) == id then return live, true end
    return nil
  end
  return redis.call('HGET', base .. 'tasks', agent .. ':' .. id), false
end

-- What is to be stored is gathered first, so that each key is written once; placed writes it.
local agenda_adds, queue_adds, task_adds, heft_adds, group_sets = {}, {}, {}, {}, {}
local function queue(agent, live, id, due)
  local key = base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent
  local q = queue_adds[key]
  if not q then
    q = {}
    queue_adds[key] = q
  end
  q[#q + 1] = due
  q[#q + 1] = sub(live, 1, 7) .. id
end

-- place puts a task among the waiting ones.
local function place(agent, single, live, id, due)
  agenda_adds[#agenda_adds + 1] = due
  agenda_adds[#agenda_adds + 1] = agent
  if not single then queue(agent, live, id, due) end
end

local function placed()
  if #task_adds > 0 then redis.call('HSET', base .. 'tasks', unpack(task_adds)) end
  if #agenda_adds > 0 then redis.call('ZADD', base .. 'agenda', 'LT', unpack(agenda_adds)) end
  for key, q in pairs(queue_adds) do redis.call('ZADD', key, unpack(q)) end
  for agent, kib in pairs(heft_adds) do weigh(agent, kib) end
  if #group_sets > 0 then redis.call('HSET', base .. 'groups', unpack(group_sets)) end
  agenda_adds, queue_adds, task_adds, heft_adds, group_sets = {}, {}, {}, {}, {}
end

-- hold stores a task of an agent that has several.
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

-- spread makes an agent with its only task inline one that has queues; due is that task's, if it was placed just now.
local function spread(agent, live, due)
  local id = parse(live)
  hold(agent, live, id)
  due = due or redis.call('ZSCORE', base .. 'agenda', agent)
  if due then queue(agent, live, id, due) end
  return QUEUED .. 2 ^ (tonumber(sub(live, 8, 8)) - 1) .. 1
end

-- NEW is the value of an agent that is to have queues and has no task yet.
local NEW = 'M00'

-- grown is the value of an 'M' agent with n more tasks, at a level.
local function grown(value, level, n)
  local mask, bit = tonumber(sub(value, 2, 2)), 2 ^ (level - 1)
  if math.floor(mask / bit) % 2 == 0 then mask = mask + bit end
  return QUEUED .. mask .. (tonumber(sub(value, 3)) + n)
end

-- wake tells whoever sleeps that the partition has work at a time.
local function wake(due)
  redis.call('PUBLISH', string.match(base, '^(.-){') .. 'wake', base .. string.format(' %.0f', due))
end

-- announce keeps `due` no later than what was placed and wakes whoever sleeps past it.
local function announce(due)
  local hint = redis.call('GET', base .. 'due') or ''
  if (tonumber(hint) or math.huge) <= due then return end -- no kind is parked, mostly
  local ms, kinds = string.match(hint, '^(%d*)(.*)$')
  if ms ~= '' and tonumber(ms) <= due then return end
  redis.call('SET', base .. 'due', string.format('%.0f', due) .. kinds)
  wake(due)
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

-- rested counts tasks of a kind that rest; it is rare enough to be written at once.
local function rested(kind, n)
  redis.call('HINCRBY', base .. 'kinds', COUNT_RESTING .. kind, n)
  count('rests', 1) -- for an audit, which has to see that something has changed
end

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
