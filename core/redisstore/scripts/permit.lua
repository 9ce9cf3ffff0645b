-- permit: the home of buckets that span partitions: take back the permits of runs that have ended in other partitions, and give new ones.
--         A bucket has its home in one partition, which alone says how much of it is in use. Each other partition that has used it has two numbers
--         here, which only grow: those of its last permit, and of its last one that is given back; what is between them is in use. So nothing
--         can be given or taken back twice, and what a lost answer has left open the next one settles.
-- needs: look holds weigh counting bounded spend limits
-- KEYS[1] agenda
-- KEYS[2] permits
-- ARGV[1] number of partitions
-- ARGV[2] nonce: the same one gets the same permits
-- ARGV[3..] 8 for each partition and bucket: bucket, partition, number of the last permit that it knows, of the last that it has given back, how many it
--           wants, of its permits how many were not used since which number: number|count or '', how its run was answered or '' (see after_run), what it has used: amount|end or ''
-- returns {now, for each: {number of its last permit, how many are new, how long to wait before it asks again, ms, for how long they are good, ms,
--          0: as long as they last, the number before the first one that is known here}, {bucket, partition, how many it wanted, 0, of others that may have some now}, {bucket, partition,
--          number of its last permit, the one before its first, of others that have not been heard of for long}, {bucket, end of its period of each budget that is used up by now}}

local FIRST = 2 -- arguments in front of the buckets
local FIELDS = 8
local AWAKE = 1000 -- ms after it has asked, or was told to, for which a partition is waited for
local AGAIN_LATER = 10000 -- ms after which a partition asks again that nobody has told to: whoever ought to may have died
local OTHERS = 64 -- partitions that wait for a bucket that are looked at
local IDLE = 7200000 -- ms after which what is not in use is forgotten
local CHECKED = '?' -- in front of a bucket: when it was last looked for silent partitions
local ENTRY = '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%w*)|(%d+)|(%d+)|(%d+)$'
local PAGE = 20 -- entries that one call looks at for what can be forgotten

-- 1. What is known of a partition and a bucket: the numbers, how many it waits for, when it asked last, when it was last heard of, what it was
-- given last, by which nonce and in which period of a budget, and how many since which number it has not used.
local entries = {}
local function entry(name, partition)
  local field = name .. '|' .. partition
  local e = entries[field]
  if not e then
    e = { number = now * 1000, wants = 0, asked = 0, heard = now, gave = 0, nonce = '', unused = 0, ends = 0, field = field, partition = partition }
    e.back, e.first = e.number, e.number
    local number, back, wants, asked, heard, gave, nonce, first, unused, ends = string.match(redis.call('HGET', KEYS[2], field) or '', ENTRY)
    if number then
      e.number, e.back, e.wants, e.asked, e.heard = tonumber(number), tonumber(back), tonumber(wants), tonumber(asked), tonumber(heard)
      e.gave, e.nonce, e.first, e.unused, e.ends = tonumber(gave), nonce, tonumber(first), tonumber(unused), tonumber(ends)
    end
    entries[field] = e
  end
  return e
end
local function keep_entry(e)
  if not e.changed then return end
  redis.call('HSET', KEYS[2], e.field, string.format(
    '%.0f|%.0f|%.0f|%.0f|%.0f|%.0f|%s|%.0f|%.0f|%.0f', e.number, e.back, e.wants, e.asked, e.heard, e.gave, e.nonce, e.first, e.unused, e.ends))
end

-- at_home is a bucket as it is counted here; nil if its limit was lifted.
local function at_home(name)
  local rule = own.behind(name)
  return rule and bucket_named(HOME .. name, rule)
end

local function in_flight(b, n)
  b.runs = math.max(b.runs + n, 0)
  if b.runs > 0 then redis.call('HSET', base .. 'flight', b.name, b.runs) else redis.call('HDEL', base .. 'flight', b.name) end
end

-- charged counts n starts of a partition in a rate and in a budget of starts; fewer than none if they were not made, and not those of a period
-- that is over.
local function charged(b, n, e)
  if b.gap then
    local empty = string.format('%.3f', (n > 0 and math.max(b.empty, now) or b.empty) + b.gap * n)
    b.empty = tonumber(empty)
    redis.call('ZADD', base .. 'rates', empty, b.name)
  end
  if b.rule.unit ~= UNIT_RUNS then return end
  local over
  if n > 0 then
    over, b.ends = spend(b.name, b.rule, ONE * n)
    e.ends = b.ends
  elseif b.ends and b.ends == e.ends then
    redis.call('HINCRBY', base .. 'spent', b.name, ONE * n)
  else
    return
  end
  b.spent = math.max(b.spent + ONE * n, 0)
  if over then
    crossed[#crossed + 1] = sub(b.name, 2)
    crossed[#crossed + 1] = b.ends
  end
end

-- 2. What partitions report.
local freed = {}
local function used_there(b, name, partition, said)
  local amount, ends = string.match(said, '^(%d+)|(%d+)$')
  if not amount or not b or not b.rule.amount then return 0 end
  local field = HOME .. HOME .. name .. '|' .. partition -- what is counted already of what was used there
  local old, old_ends = string.match(redis.call('HGET', KEYS[2], field) or '', '^(%d+)|(%d+)$')
  local more = tonumber(amount) - (old_ends == ends and tonumber(old) or 0)
  if more <= 0 then return 0 end
  redis.call('HSET', KEYS[2], field, said)
  local over
  over, b.ends = spend(b.name, b.rule, more)
  b.spent = b.spent + more
  if over then
    crossed[#crossed + 1] = name
    crossed[#crossed + 1] = b.ends
  end
  return more
end
local function answered(b, runs, answer)
  if not b.rule.adapts then return end
  if answer == SERVED or byte(answer) == byte('w') then
    learn(b.name, runs, b.rule.runs or 0, tonumber(sub(answer, 2)))
  else
    unprobed(b.name)
  end
  b.learned = learned(b.name)
  b.gap = b.learned and b.learned.gap > 0 and b.learned.gap or nil
end
local function take_report(name, partition, number, back, unused, answer, used)
  local e, b = entry(name, partition), at_home(name)
  if number > e.number then e.number = number end -- this place has lost what it knew last
  back = math.min(back, e.number)
  e.heard, e.changed = now, true
  local more_used = used_there(b, name, partition, used)
  local first, count = string.match(unused, '^(%d+)|(%d+)$')
  -- guard: spanning-unused
  local more = tonumber(first) == e.first and tonumber(count) - e.unused or 0
  if more > 0 then
    e.unused = e.unused + more
    if b then charged(b, -more, e) end
    freed[name] = true
  end
  -- guard: spanning-back
  if back <= e.back then return e, b end
  local n, runs = back - e.back, b and b.runs
  e.back = back
  if b then
    in_flight(b, -n)
    if b.reserved and (answer == SERVED or byte(answer) == byte('w')) then own.note_use(HOME .. b.rule.id, b.rule.unit, math.ceil(more_used / n)) end
    answered(b, runs, answer)
    freed[name] = true
  end
  return e, b
end

-- 3. How many may start now, and who comes first.
-- with_room is how many runs a budget of what runs report has room for beside those under way, as own.tight has it for one partition; of whatever
-- kind, as permits are for any. Where nothing is known yet one run starts alone.
local function with_room(b)
  local u = own.usual(HOME .. b.rule.id, b.rule.unit)
  if not u then return b.runs == 0 and 1 or 0 end
  if u[2] == 0 then return math.huge end
  return math.max(math.floor((b.rule.amount - b.spent - b.runs * u[2] - u[1]) / u[2]) + 1, b.runs == 0 and 1 or 0)
end
local function available(b, most)
  if not vacant(b) then return 0 end
  local l, n = b.learned, most
  if l then n = l.probe == PROBE_WANTED and 1 or math.min(n, math.floor(l.allow) - b.runs) end
  if b.rule.adapts and not l then n = 1 end
  -- guard: spanning-runs
  if b.rule.runs then n = math.min(n, b.rule.runs - b.runs) end
  if b.gap then n = math.min(n, math.floor((now + (l and LATE or b.rule.leeway) - b.empty) / b.gap) + 1) end
  -- guard: reserve-spanning
  if b.reserved and not b.rule.notify then n = math.min(n, with_room(b)) end
  if b.rule.unit == UNIT_RUNS and not b.rule.notify then n = math.min(n, math.ceil((b.rule.amount - b.spent) / ONE)) end
  return math.max(n, 0)
end

-- ahead is how many partitions come before one that are likely to ask at once. Those that ask in the same call had their turn.
local asks_now = {}
local function ahead(name, e)
  local n = 0
  for _, p in ipairs(redis.call('ZRANGE', base .. 'asks:' .. name, 0, OTHERS - 1)) do
    if p == e.partition then break end
    if not asks_now[name .. '|' .. p] and now - entry(name, p).asked < AWAKE then n = n + 1 end
  end
  return n
end

local function grant(name, e, want)
  -- guard: spanning-nonce
  if e.nonce == ARGV[2] then return e.gave, e.gave < want and AWAKE or 0 end -- its answer was lost
  e.nonce, e.gave = ARGV[2], 0
  local b, asks = at_home(name), base .. 'asks:' .. name
  if not b then -- it was lifted: nothing bounds it
    e.number, e.back, e.gave, e.changed = e.number + want, e.back + want, want, true
    return want, 0
  end
  if not redis.call('ZSCORE', asks, e.partition) then
    redis.call('ZADD', asks, (tonumber(redis.call('ZRANGE', asks, -1, -1, 'WITHSCORES')[2]) or 0) + 1, e.partition)
  end
  local there = available(b, want + OTHERS)
  local n = math.max(math.min(want, there - ahead(name, e)), 0)
  local behind = there > 0 and n < math.min(want, there)
  if n > 0 then
    e.number, e.gave = e.number + n, n
    in_flight(b, n)
    if b.rule.adapts then adapted(b) end
    charged(b, n, e)
  end
  e.wants, e.asked, e.heard, e.changed = want - n, now, now, true
  if n == want then
    redis.call('ZREM', asks, e.partition)
    return n, 0
  end
  if n > 0 then redis.call('ZADD', asks, tonumber(redis.call('ZRANGE', asks, -1, -1, 'WITHSCORES')[2]) + 1, e.partition) end
  local at = start_at(b)
  if not busy(b) and b.gap then return n, math.max(math.ceil(at - now + ahead(name, e) * b.gap), 1) end -- each at its own time
  if behind then return n, AWAKE end
  if not busy(b) and at > now then return n, math.ceil(at - now) end
  return n, AGAIN_LATER
end

-- 4. All reports come before all questions, and of these the ones of partitions that have waited longest.
redis.call('ZREM', base .. 'leases', '') -- the first write must be one that is allowed when memory is full
local reply, questions = { now }, {}
for i = 1, (#ARGV - FIRST) / FIELDS do
  local at = FIELDS * (i - 1) + FIRST
  local name, partition = ARGV[at + 1], ARGV[at + 2]
  local e = take_report(name, partition, tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 6], ARGV[at + 7], ARGV[at + 8])
  local want = tonumber(ARGV[at + 5])
  if want > 0 then
    asks_now[e.field] = true
    questions[#questions + 1] = { i = i, name = name, e = e, want = want, turn = tonumber(redis.call('ZSCORE', base .. 'asks:' .. name, partition)) or math.huge }
  end
  reply[i + 1] = { string.format('%.0f', e.number), 0, 0, 0, string.format('%.0f', e.first) }
end
table.sort(questions, function(a, b) return a.turn < b.turn or a.turn == b.turn and a.i < b.i end)
local denied = {}
for _, q in ipairs(questions) do
  local n, wait = grant(q.name, q.e, q.want)
  local b = at_home(q.name)
  reply[q.i + 1] = { string.format('%.0f', q.e.number), n, wait, b and b.gap and b.rule.slack or 0, string.format('%.0f', q.e.first) }
  if n == 0 and wait == AGAIN_LATER then denied[q.name] = true end
end

-- 5. Others that wait are told that there is room; and where nobody knows whether runs still go on, they are asked for.
local wake, silent = {}, {}
for name in pairs(freed) do
  local b = at_home(name)
  local there = b and available(b, OTHERS) or OTHERS
  for _, p in ipairs(there > 0 and redis.call('ZRANGE', base .. 'asks:' .. name, 0, OTHERS - 1) or {}) do
    local e = entry(name, p)
    if there > 0 and not asks_now[e.field] then
      there = there - 1
      if now - e.asked >= AWAKE / 4 then e.asked, e.changed = now, true end
      for _, v in ipairs({ name, p, e.wants, 0 }) do wake[#wake + 1] = v end
    end
  end
end
for name in pairs(denied) do
  local checked = tonumber(redis.call('HGET', KEYS[2], CHECKED .. name)) or 0
  for p = 0, now - checked >= AGAIN_LATER and ARGV[1] - 1 or -1 do
    local e = entry(name, tostring(p))
    -- guard: spanning-silent
    if e.number > e.back and now - e.heard >= AGAIN_LATER then
      for _, v in ipairs({ name, e.partition, string.format('%.0f', e.number), string.format('%.0f', e.first) }) do silent[#silent + 1] = v end
    end
  end
  if now - checked >= AGAIN_LATER then redis.call('HSET', KEYS[2], CHECKED .. name, now) end
end

-- 6. What nobody uses is forgotten, now and then.
local function over(field, value)
  if sub(field, 1, 1) == CHECKED then return field ~= CHECKED and now - tonumber(value) > IDLE end
  if sub(field, 1, 1) == HOME then return tonumber(string.match(value, '%d+$')) + IDLE < now end
  local number, back, _, _, heard = string.match(value, ENTRY)
  return number == back and now - tonumber(heard) > IDLE
end
if now % PAGE == 0 then
  local page = redis.call('HSCAN', KEYS[2], redis.call('HGET', KEYS[2], CHECKED) or '0', 'COUNT', PAGE)
  for i = 1, #page[2], 2 do
    if over(page[2][i], page[2][i + 1]) then
      redis.call('HDEL', KEYS[2], page[2][i])
      local name, partition = string.match(page[2][i], '^([^%^%?].*)|(%d+)$')
      if name then redis.call('ZREM', base .. 'asks:' .. name, partition) end
    end
  end
  redis.call('HSET', KEYS[2], CHECKED, page[1])
end
for _, e in pairs(entries) do keep_entry(e) end
for _, list in ipairs({ wake, silent, crossed }) do reply[#reply + 1] = list end
return reply
