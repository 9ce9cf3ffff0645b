-- audit: look whether each live task of a page waits in the agenda, runs or is parked, and put back one that does not; in the
--        end whether the counters say what is there.
-- needs: look holds grouped answers recount
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] claims
-- KEYS[5] leases
-- KEYS[6] parked
-- ARGV[1] cursor: 't' for a page of tasks, 'a' of agents, 'g' of the agenda, 'p' of what is parked, 'q' of the kinds that run,
--         or k, m or s of counters, and where it begins, then '@' and the name of the round while it counts; t0 first. '!' is a round that has mended something: another one
--         follows that counts, whose name begins with '+', or is '-' if it does so no more
-- ARGV[2] about how many
-- ARGV[3] 1 to repair what is found
-- ARGV[4] retention of finished records, ms
-- returns {now, the next cursor or '', tasks seen, for each fault: agent or '', id or '', what}
--          what: lost, stranded, doubled, miscounted, asleep, unreadable or gone

-- What a page is of, as the cursor says it; the counters' are k, m and s.
local TASKS = 't'
local AGENTS = 'a'
local AGENDA = 'g'
local PLACES = 'p'
local KINDS = 'q'
local phase, cursor, round = string.match(ARGV[1], '^(.)(%d*)@?(.*)$')
local n, repair, retention = ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local STARTS = ARGV[1] == 't0'
local mended, SECOND, BEGINS = round == '!', string.find(round, '^[+-]'), STARTS or round == '+'
if BEGINS then -- a caller, and one of its calls
  round = round .. sub(CALL, 10) .. string.gsub(sub(CALL, 2, 9), '.', function(c) return string.format('%02x', byte(c)) end)
end
local reply, seen, repaired, counts = { now, '', 0 }, 0, false, recounting(round, BEGINS)
local function fault(agent, id, what)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = agent, id, what
  repaired = repaired or repair
  if what == 'unreadable' or what == 'gone' then return end
  counts, mended = false, mended or repair -- what is counted is compared once the rest is right
end
if string.find(phase, '[kms]') then
  local next_ = ''
  if counts then
    next_ = comparing[phase](round, cursor, n, retention, function(agent) fault(agent, '', 'miscounted') end, repair)
  end
  reply[2] = next_ == '' and '' or next_ .. '@' .. round
  return repaired and kept_answer(reply) or reply
end

-- 1. Who runs. A claim whose lease is gone gets one that ends now: the next claim takes its tasks back as those of the dead,
-- so that its runs lose them, their crashes count and their orders are kept.
local leased, leased_of = {}, {}
local function runs(fence, told)
  local found = redis.call('HMGET', KEYS[4], fence, fence .. CLAIM_REFS)
  local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
  if not whole or not found[1] then return end
  for i = 1, #refs / 3 do
    if byte(found[1], i) == byte(RUNNING) then
      local agent, id = refs[3 * i - 2], refs[3 * i - 1]
      leased[agent .. ':' .. id] = true
      leased_of[agent] = (leased_of[agent] or 0) + 1
      if told then fault(agent, id, 'lost') end
    end
  end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do -- not by the leases: the ends of all holds stand among them
  local fence = string.match(field, '^(%d+)r$')
  if fence then
    local unleased = not redis.call('ZSCORE', KEYS[5], fence)
    runs(fence, unleased and (STARTS or repair))
    if unleased and repair then redis.call('ZADD', KEYS[5], now, fence) end
  end
end

-- 2. Where tasks are.
-- served says whether a task stands in its line, and whether a claim will come to that: now, at a time, or when a run ends.
local function served(ref)
  local agent, id = string.match(ref, '^([^:]*):(.*)$')
  local bucket = redis.call('HGET', base .. 'lined', ref)
  if not bucket or not redis.call('ZSCORE', base .. 'line:' .. bucket .. ':' .. agent, id) then return false end
  if not redis.call('ZSCORE', base .. 'line:' .. bucket, agent) then return false end
  local scope = SCOPE_LIMIT .. bucket
  if redis.call('ZSCORE', base .. 'open', scope) or redis.call('ZSCORE', KEYS[5], HELD .. scope) then return true end
  return tonumber(redis.call('HGET', base .. 'flight', bucket) or 0) > 0
end

-- comes_back says whether something will put back what is parked at a place. The end of a hold that nobody would see is
-- kept again.
local function comes_back(name, ref)
  if byte(name) ~= byte(HELD) then return redis.call('HEXISTS', KEYS[6], name) == 1 end
  if sub(name, 2, 3) == SCOPE_LIMIT then return served(ref) end
  local scope = name == HELD_TASKS and SCOPE_TASK .. ref or sub(name, 2)
  if redis.call('ZSCORE', base .. 'open', scope) then return true end
  local held = redis.call('HGET', base .. 'holds', scope)
  local till = held and tonumber(sub(held, 1, 13))
  if till and till > 0 and not redis.call('ZSCORE', KEYS[5], HELD .. scope) then
    if repair then redis.call('ZADD', KEYS[5], till, HELD .. scope) end
    return false
  end
  return till
end

-- emptied takes a task out of every place where it may be parked, whatever the counts say.
local function emptied(agent, id, live)
  local _, kind = parse(live)
  local names = { kind }
  for i, scope in ipairs(scopes(agent, id, live)) do names[i + 1] = bay(scope) end
  leave_line(agent, id)
  names[#names + 1] = berth(agent)
  for _, name in ipairs(names) do
    if redis.call('ZREM', base .. 'parked:' .. name, agent .. ':' .. id) == 1 then unparked(name, 1) end
  end
end

local function lost(agent, id, live, member)
  fault(agent, id, 'lost')
  -- guard: audit
  if not repair then return end
  emptied(agent, id, live)
  -- Its due time is lost with its place; but no task of its agent was due before the agenda says.
  local first = not member and tonumber(redis.call('ZSCORE', KEYS[1], agent)) or now
  take_back(agent, live, id, member, math.max(first, now))
end

local function check(agent, id, live, member)
  local ref = agent .. ':' .. id
  local place_, due, name = where(agent, id, live, member)
  seen = seen + 1
  if counts then tally(agent, id, live, place_) end
  if place_ == IS_RUNNING then
    if not leased[ref] then lost(agent, id, live, member) end
  elseif leased[ref] then
    fault(agent, id, 'doubled')
    if repair then lift(agent, id, live, member, place_, name) end
  elseif place_ == IS_PARKED and not comes_back(name, ref) then
    fault(agent, id, 'stranded')
    if repair then -- a claim parks it again if it is held still
      lift(agent, id, live, member, place_, name)
      place(agent, member, live, id, due)
    end
  end
end

-- 3. An agent with queues has to be looked at when the first of its tasks is due, at each level where it has some, and must
-- not be forgotten while it has tasks.
local PARKED = redis.call('EXISTS', KEYS[6]) == 1
local function wakes(agent, value)
  local first, right, n = nil, value, leased_of[agent] or 0
  for level = 1, 3 do
    local key = base .. 'queue:' .. level .. ':' .. agent
    local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local due = tonumber(head[2])
    if due then
      local id = sub(head[1], 8)
      if redis.call('HEXISTS', KEYS[3], agent .. ':' .. id) == 0 then fault(agent, id, 'gone') end
      n = n + redis.call('ZCARD', key)
      first = math.min(first or due, due)
      right = grown(right, level, 0)
    end
  end
  local score = tonumber(redis.call('ZSCORE', KEYS[1], agent))
  local waits = score and score <= math.max(first or 0, now)
  if right ~= value or first and not waits and not busy_of({ agent })[1] then
    fault(agent, '', 'asleep')
    if repair then
      redis.call('HSET', KEYS[2], agent, right)
      if first then agenda_adds[#agenda_adds + 1], agenda_adds[#agenda_adds + 2] = first, agent end
    end
  end
  local counted_ = tonumber(sub(value, 3))
  -- While some tasks are parked a count may be higher than what is seen here; one that is too low forgets the agent early.
  if counted_ < n or repair and not PARKED and counted_ > n then
    fault(agent, '', 'miscounted')
    if repair and n > 0 then redis.call('HSET', KEYS[2], agent, sub(right, 1, 2) .. n) end
    if repair and n == 0 then redis.call('HDEL', KEYS[2], agent) end
  end
end

-- few checks an agent with few tasks: the first one, and that the others are there; these are looked at as tasks.
local function few(agent, value)
  local first, names_, n = first_of(value), names_of(value), 0
  local id, right = parse(first), ''
  if id then
    check(agent, id, first, agent)
    n = 1
  end
  for i = 1, #names_, 2 do
    if redis.call('HEXISTS', KEYS[3], agent .. ':' .. names_[i + 1]) == 1 then
      n = n + 1
      right = right .. name_of(names_[i], names_[i + 1])
    else
      fault(agent, names_[i + 1], 'gone')
    end
  end
  if n ~= byte(value, 3) then
    fault(agent, '', 'miscounted')
    if repair and n > 0 then redis.call('HSET', KEYS[2], agent, few_of(sub(value, 2, 2), n, first, right)) end
    if repair and n == 0 then redis.call('HDEL', KEYS[2], agent) end
  end
end

-- 4. A task whose agent is not known, or holds another one inline: the agent becomes one with queues.
local function adopt(agent, value, live)
  local new = 'M01'
  if count_of(value) > 0 and byte(value) ~= byte(QUEUED) then new = spread(agent, value) end
  redis.call('HSET', KEYS[2], agent, grown(new, tonumber(sub(live, 8, 8)), 1))
end

-- 5. The hint has to be there in time, and to name the kinds that are parked.
local function hinted()
  local ms, kinds = string.match(redis.call('GET', base .. 'due') or '', '^(%d*)(.*)$')
  if not ms then return false end
  if ms ~= '' and tonumber(ms) <= now then return true end -- whoever looks claims, which works it out anew
  local still = stopped()
  for _, name in ipairs(still and { 'leases' } or { 'agenda', 'leases' }) do
    local due = tonumber(redis.call('ZRANGE', base .. name, 0, 0, 'WITHSCORES')[2])
    if due and (ms == '' or tonumber(ms) > due) then return false end
  end
  local many = redis.call('HLEN', KEYS[6]) > NAMED
  if many and not still and kinds ~= HINT_MANY then return false end
  for _, kind in ipairs((still or many) and {} or redis.call('HKEYS', KEYS[6])) do
    if kind ~= HELD and not string.find(kinds .. HINT_KIND, HINT_KIND .. kind .. HINT_KIND, 1, true) then return false end
  end
  return true
end

-- 6. A count of what is parked says how much is there.
local function recount(kind, said)
  local n = redis.call('ZCARD', base .. 'parked:' .. kind)
  if n == tonumber(said) then return end
  fault('', '', 'miscounted')
  if not repair then return end
  if n > 0 then redis.call('HSET', KEYS[6], kind, n) else redis.call('HDEL', KEYS[6], kind) end
end

-- running_kinds sets how many tasks run to what the claims say, and returns of which kinds they are.
local function running_kinds()
  local running, kinds = 0, {}
  for ref in pairs(leased) do
    local agent, id = string.match(ref, '^([^:]*):(.*)$')
    local live = find(agent, redis.call('HGET', KEYS[2], agent), id)
    local _, kind = parse(live or '')
    running = running + 1
    if kind then kinds[kind] = (kinds[kind] or 0) + 1 end
  end
  redis.call('HSET', base .. 'counters', 'running', running)
  return kinds
end

-- tasks_from reads a page of tasks: a few at a time where some are large, until these have half a mebibyte.
local function tasks_from(from)
  local few = redis.call('EXISTS', base .. 'bytes') == 1
  local page, kib = { from, {} }, 0
  repeat
    local some = redis.call('HSCAN', KEYS[3], page[1], 'COUNT', few and 2 or n)
    page[1] = some[1]
    for _, v in ipairs(some[2]) do
      page[2][#page[2] + 1] = v
      kib = kib + math.floor(#v / 1024)
    end
  until not few or page[1] == '0' or kib >= 512 or #page[2] >= 2 * tonumber(n)
  return page
end

-- quoted says which tasks quotas count that are live no more: a version without quotas has ended them.
local function quoted(agents)
  local names = {}
  for i = 1, #agents, 2 do names[#names + 1] = agents[i] end
  if #names == 0 or redis.call('EXISTS', base .. 'quotas') == 0 then return end
  for i, own in ipairs(redis.call('HMGET', base .. 'quotas', unpack(names))) do
    for _, id in ipairs(own and redis.call('HKEYS', base .. 'recurs:' .. names[i]) or {}) do
      if not find(names[i], agents[2 * i], id) then
        fault(names[i], id, 'miscounted')
        if repair then redis.call('HDEL', base .. 'recurs:' .. names[i], id) end
      end
    end
  end
end

local page
if phase == TASKS then
  page = tasks_from(cursor)
  if #page[2] > 0 then found[':tasks'] = #page[2] / 2 end
  for i = 1, #page[2], 2 do
    local live = page[2][i + 1]
    local agent, id = string.match(page[2][i], '^([^:]*):(.*)$')
    local value = agent and redis.call('HGET', KEYS[2], agent)
    if not agent or parse(live) ~= id then
      fault(agent or '', id or page[2][i], 'unreadable')
    elseif value and byte(value) == byte(QUEUED) then
      check(agent, id, live, false)
      if repair then agenda_rems[#agenda_rems + 1] = agent .. ':' .. sub(live, 1, 7) .. id end -- where it was with few others
    elseif value and byte(value) == byte(FEW) and string.find(value, name_of(sub(live, 1, 7), id), 1, true) then
      check(agent, id, live, member_of(agent, value, live, id))
    else
      local before = #reply
      if repair then
        adopt(agent, value, live)
        agenda_rems[#agenda_rems + 1] = agent .. ':' .. sub(live, 1, 7) .. id
      end
      check(agent, id, live, false)
      if #reply == before then fault(agent, id, 'lost') end
    end
  end
  reply[2] = page[1] == '0' and AGENTS .. '0' or TASKS .. page[1]
elseif phase == AGENTS then
  page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', n)
  if #page[2] > 0 then found[':agents'] = #page[2] / 2 end
  for i = 1, #page[2], 2 do
    local agent, value = page[2][i], page[2][i + 1]
    local live = byte(value) == byte(INLINE) and sub(value, 2)
    if live and parse(live) then
      check(agent, parse(live), live, agent)
    elseif byte(value) == byte(FEW) and count_of(value) > 0 then
      few(agent, value)
    elseif byte(value) == byte(QUEUED) and tonumber(sub(value, 2)) then
      wakes(agent, value)
    else
      fault(agent, '', 'unreadable')
    end
  end
  quoted(page[2])
  reply[2] = page[1] == '0' and AGENDA .. '0' or AGENTS .. page[1]
elseif phase == AGENDA then
  page = redis.call('ZSCAN', KEYS[1], cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local agent, id = string.match(page[2][i], '^([^:]*):.......(.*)$')
    if redis.call('HEXISTS', agent and KEYS[3] or KEYS[2], agent and agent .. ':' .. id or page[2][i]) == 0 then
      fault(agent or page[2][i], id or '', 'gone')
    elseif agent and byte(redis.call('HGET', KEYS[2], agent) or '') ~= byte(FEW) then
      fault(agent, id, 'doubled')
      if repair then agenda_rems[#agenda_rems + 1] = page[2][i] end
    end
  end
  reply[2] = page[1] == '0' and PLACES .. '0' or AGENDA .. page[1]
elseif phase == PLACES then
  page = redis.call('HSCAN', KEYS[6], cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    if page[2][i] ~= HELD then recount(page[2][i], page[2][i + 1]) end
  end
  reply[2] = page[1] ~= '0' and PLACES .. page[1] or repair and not counts and KINDS .. '0' or ''
else -- without a round that counts: it would count these too
  local kinds = running_kinds()
  page = redis.call('HSCAN', base .. 'kinds', cursor, 'COUNT', n)
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    if byte(field) == byte(COUNT_RUNNING) then redis.call('HSET', base .. 'kinds', field, kinds[sub(field, 2)] or 0) end
  end
  if page[1] ~= '0' then reply[2] = KINDS .. page[1] end
end
placed()
local last = reply[2] == ''
if repaired then
  look()
  wake(now)
elseif last and not hinted() then
  fault('', '', 'asleep')
  if repair then
    look()
    wake(now)
  end
end
if counts then tallied(round) end
counts = counts and (not last or whole(round))
if counts then
  reply[2] = (last and 'k0' or reply[2]) .. '@' .. round
else
  if #round > 1 then redis.call('DEL', shadow .. round) end
  if not last then
    reply[2] = reply[2] .. (SECOND and '@-' or mended and '@!' or '')
  elseif mended and not SECOND then
    reply[2] = 't0@+'
  end
end
reply[3] = SECOND and 0 or seen
return (repaired or counts) and kept_answer(reply) or reply
