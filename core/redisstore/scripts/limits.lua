-- limits: how many tasks of a sort run at once and start within a time, and the lines in which those wait that may not yet.
-- needs: look holds weigh counting bounded spend

local LIMITS = redis.call('EXISTS', base .. 'limits', base .. 'lines', base .. 'bounds') > 0
local AGENT_MINUTE = 60000 -- ms that a level counts for in the line of an agent
local LINE_PAGE = 50 -- agents of a line that one claim looks at
local SCANNED = '?' -- in granted: how far a search for what can be forgotten has come
local UNUSED = 7200000 -- ms after which the number of a permit is forgotten
local HEADS = 8 -- agents of a line that are looked at for what their next tasks need

function span.hand(name) return span.hands[name] and span.hands[name].left or 0 end

function span.keep_granted(name, g)
  redis.call('HSET', base .. 'granted', name, string.format('%.0f|%.0f|%s|%.0f', g.number, now, g.first, g.unused))
end

-- own.tight says whether a budget has no room for a run of a kind beside those under way: the most that each of these may use, and what this one
-- usually does, has to fit. Of the first runs of their kinds, of which nothing is known, one at a time. A run that is alone fits.
function own.tight(b, kind)
  if not b.reserved or b.rule.notify or b.reserved + b.untried == 0 then return false end
  local u, tight = own.usual(kind, b.rule.unit), false
  if u then tight = b.spent + b.reserved + u[1] > b.rule.amount else tight = b.untried > 0 end
  b.tight = b.tight or tight
  return tight
end

-- own.reserve keeps that for a run.
function own.reserve(b, kind, kept)
  local u = own.usual(kind, b.rule.unit)
  if u and u[2] == 0 then return end
  -- guard: reserve-on-redis
  if u then b.reserved = b.reserved + u[2] else b.untried = b.untried + 1 end
  redis.call('HSET', base .. 'reserved', b.name, string.format('%.0f|%.0f', b.reserved, b.untried))
  kept[#kept + 1] = (u and string.format('%.0f', u[2]) or '?') .. ' ' .. b.name
end

-- span.take reads what the caller brings: for each bucket a line of its name, the number of its last permit, how many are new, how long to
-- wait, until when they are good, and the number before the first permit that its home knows of; with tabs. The number 0 only has the line
-- looked at again. Permits that come after others with higher numbers count as not used from then on, as those do that never come. Behind them is what
-- the caller expects runs to use: see own.expect.
function span.take(text)
  own.expect(text)
  for name, number, n, wait, till, first in string.gmatch(text, '([^\t]+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\t(%d+)\n') do
    number, n, till = tonumber(number), tonumber(n), tonumber(till)
    if number == 0 then
      if redis.call('HEXISTS', base .. 'lines', name) == 1 then
        redis.call('ZREM', base .. 'leases', HELD .. SCOPE_LIMIT .. name)
        redis.call('ZADD', base .. 'open', 'NX', now, SCOPE_LIMIT .. name)
      end
    else
      local g = span.granted(name)
      if first ~= g.first then g.number, g.first, g.unused = math.max(g.number, tonumber(first)), first, 0 end
      if number <= g.number or till > 0 and now > till then n = 0 end
      if number > g.number then
        g.unused = g.unused + number - g.number - n
        g.number = number
        span.keep_granted(name, g)
      end
      span.hands[name] = { left = n, all = n, wait = tonumber(wait) }
    end
  end
end

-- span.told is what the caller is told of buckets that span partitions: for each its name, how many permits to ask for, the number of the
-- last one that is known, the number of the last that is given back if they are in order, and how many were not used since which number.
function span.told()
  local reply, seen = {}, {}
  local function tell(name)
    if seen[name] then return end
    seen[name] = true
    local g, left = span.granted(name), span.hand(name)
    if left > 0 then
      g.unused = g.unused + left
      span.keep_granted(name, g)
    end
    local back = g.number - (tonumber(redis.call('HGET', base .. 'flight', name)) or 0)
    local unused = g.first .. '|' .. string.format('%.0f', g.unused)
    for _, v in ipairs({ name, span.wants[name] or 0, string.format('%.0f', g.number), string.format('%.0f', math.max(back, 0)), unused }) do reply[#reply + 1] = v end
  end
  for name in pairs(span.wants) do tell(name) end
  for name in pairs(span.hands) do tell(name) end
  for _, name in ipairs(given_back) do tell(name) end
  return reply
end

-- rules are the limits and the budgets, in the order of their names.
local rules, rule_of = nil, {}
function own.rules_in(all)
  local list = {}
  for i = 1, #all, 2 do
    local rule = counting.rule(all[i], all[i + 1])
    if rule then list[#list + 1] = counting.about(rule) end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end
local function read_rules()
  rules = own.rules_in(redis.call('HGETALL', base .. 'limits'))
  for _, rule in ipairs(rules) do rule_of[rule.id] = rule end
  own.some = redis.call('EXISTS', base .. 'bounds') == 1
end

-- own.rules are those of the profile of an agent.
-- rule: bounds
function own.rules(agent)
  if not own.some then return {} end
  if not own.of[agent] then own.of[agent] = own.rules_in(counting.listed(redis.call('HGET', base .. 'bounds', agent))) end
  return own.of[agent]
end

-- own.behind is the rule of a bucket; nil if it was lifted.
function own.behind(name)
  if not rules then read_rules() end
  local id, of = counting.split(name)
  if string.match(id, OWN) then
    for _, rule in ipairs(own.rules(of)) do
      if rule.id == id then return rule end
    end
  end
  return rule_of[id]
end

-- bucket_named is what is known of a bucket: how many runs count in it, when it would be empty, what it has used or learned, and whether
-- others wait for it. Of one that spans partitions only its home knows that: here a start needs a permit of it.
local buckets = {}
local function bucket_named(name, rule)
  local b = buckets[name]
  if not b and rule and rule.spans and byte(name) ~= byte(HOME) then
    b = { name = name, rule = rule, spans = true, waits = redis.call('HEXISTS', base .. 'lines', name) == 1 }
    b.runs = tonumber(redis.call('HGET', base .. 'flight', name)) or 0
    buckets[name] = b
  elseif not b then
    b = { name = name, rule = rule or {}, runs = tonumber(redis.call('HGET', base .. 'flight', name)) or 0, waits = redis.call('HEXISTS', base .. 'lines', name) == 1 }
    b.learned = b.rule.adapts and learned(name)
    b.gap = b.learned and b.learned.gap > 0 and b.learned.gap or b.rule.spans and b.rule.wide or b.rule.gap
    b.empty = b.gap and tonumber(redis.call('ZSCORE', base .. 'rates', name)) or 0
    if b.rule.amount then b.spent, b.ends = spent(name) end
    if b.rule.amount and b.rule.unit ~= UNIT_RUNS then
      local all, untried = string.match(b.runs > 0 and redis.call('HGET', base .. 'reserved', name) or '', '^(%d+)|(%d+)$')
      b.reserved, b.untried = tonumber(all) or 0, tonumber(untried) or 0
    end
    buckets[name] = b
  end
  return b
end

-- buckets_of are those that a task counts in: those of all agents, and those of the profile of its own.
local matching = {}
local function buckets_of(agent, id, kind, key)
  if not rules then read_rules() end
  local sort = kind .. '|' .. key
  local found, list = matching[sort], {}
  if not found then
    found = {}
    for _, r in ipairs(rules) do
      if counting.applies(r, kind, key) then found[#found + 1] = r end
    end
    matching[sort] = found
  end
  for i, r in ipairs(found) do
    list[i] = bucket_named(counting.bucket(r, agent, agent .. ':' .. id, key), r)
  end
  for _, r in ipairs(own.rules(agent)) do
    if counting.applies(r, kind, key) then list[#list + 1] = bucket_named(r.id .. '|' .. agent, r) end
  end
  return list
end

-- start_at is when a bucket has room for another start, now or before if it has; unless a run has to end first, as `busy` says.
local function start_at(b)
  if b.spans then return 0 end
  if b.rule.amount then return b.spent >= b.rule.amount and not b.rule.notify and b.ends or 0 end
  if b.learned then return math.max(b.learned.till, b.gap and b.empty - LATE or 0) end
  return b.gap and b.empty - b.rule.leeway or 0
end
local function busy(b)
  -- guard: spanning-permit
  if b.spans then return not span.asking and span.hand(b.name) <= 0 end
  local l = b.learned
  if l and l.probe == PROBE_OUT or l and l.probe == 0 and b.runs >= math.floor(l.allow) then return true end
  -- guard: limit-runs
  return b.rule.runs and b.runs >= b.rule.runs
end
local function vacant(b) return not busy(b) and start_at(b) <= now end

-- span.needs notes that a task needs a permit of each bucket that spans partitions. `whole` says that so many are needed in all, else so many more.
function span.needs(agent, id, live, n, whole)
  local _, kind = parse(live)
  for _, b in ipairs(buckets_of(agent, id, kind, key_of(live))) do
    if b.spans then span.wants[b.name] = whole and math.max(span.wants[b.name] or 0, n) or (span.wants[b.name] or 0) + n end
  end
end

-- full is the first bucket that has no room for a task, or in which others wait that came before it; `from` is the one that lets it
-- go now: it has been through the lines before that, or nobody was there. Else two lines could hand it to and fro for ever.
-- rule: limits
local function full(agent, live, from)
  local id, kind = parse(live)
  local buckets, first = buckets_of(agent, id, kind, key_of(live)), 0
  for i, b in ipairs(buckets) do
    if b == from then first = i end
  end
  for i, b in ipairs(buckets) do
    if not vacant(b) or b.waits and i > first and not span.asking or own.tight(b, kind) then return b end
  end
end

-- adapted counts a start in a bucket that adapts.
local function adapted(b)
  local l = b.learned or { allow = 1, gap = 0, since = now, served = 0, till = 0, probe = 0, heard = now }
  if not b.learned or l.probe == PROBE_WANTED then
    if l.probe == PROBE_WANTED then l.probe = PROBE_OUT end
    b.learned = l
    keep(b.name, l)
  end
end

-- charge counts a task that is taken; the budgets that are used up by it are added to `crossed`.
local crossed = {}
local function charge(agent, id, live)
  local _, kind = parse(live)
  local names, kept = {}, {}
  for i, b in ipairs(buckets_of(agent, id, kind, key_of(live))) do
    names[i] = b.name
    b.runs = b.runs + 1
    redis.call('HSET', base .. 'flight', b.name, b.runs)
    if b.spans then span.hands[b.name].left = span.hands[b.name].left - 1 end
    if b.rule.adapts and not b.spans then adapted(b) end
    if b.reserved then own.reserve(b, kind, kept) end
    if b.gap then
      -- guard: limit-rate
      b.empty = counting.started(b.empty, b.gap)
      redis.call('ZADD', base .. 'rates', string.format('%.3f', b.empty), b.name)
    end
    if b.rule.unit == UNIT_RUNS and not b.spans then
      local over
      over, b.ends = spend(b.name, b.rule, ONE)
      b.spent = b.spent + ONE
      if over then
        crossed[#crossed + 1] = b.name
        crossed[#crossed + 1] = b.ends
      end
    end
  end
  if #names > 0 then redis.call('HSET', base .. 'uses', agent .. ':' .. id, table.concat(names, '\n')) end
  if #kept > 0 then redis.call('HSET', base .. 'reserves', agent .. ':' .. id, table.concat(kept, '\n')) end
end

-- last_turn is that of who comes last in a line.
local function last_turn(name)
  return (tonumber(redis.call('ZRANGE', base .. 'line:' .. name, -1, -1, 'WITHSCORES')[2]) or 0) + 1
end

-- comes_next sees to it that a line with somebody in it is looked at again: by the next claim, when there is room for a start, or,
-- as it is now, when a run ends.
local function comes_next(b)
  local scope, told = SCOPE_LIMIT .. b.name, b.spans and span.hands[b.name]
  if told and told.wait > 0 then
    redis.call('ZREM', base .. 'open', scope)
    redis.call('ZADD', base .. 'leases', now + told.wait, HELD .. scope)
  elseif (busy(b) or b.tight and start_at(b) <= now) and not b.spans then
    redis.call('ZREM', base .. 'open', scope)
  elseif start_at(b) > now then
    redis.call('ZREM', base .. 'open', scope)
    redis.call('ZADD', base .. 'leases', math.ceil(start_at(b)), HELD .. scope)
  else -- behind others, as it may be nothing for whoever has just looked
    redis.call('ZADD', base .. 'open', now, scope)
  end
end

-- join_line parks a task until there is room in a bucket.
local function join_line(b, agent, id, live, due)
  park(agent, berth(agent), id, due)
  redis.call('HSET', base .. 'lined', agent .. ':' .. id, b.name)
  redis.call('HINCRBY', base .. 'lines', b.name, 1)
  count('lined', 1)
  local own = base .. 'line:' .. b.name .. ':' .. agent
  if redis.call('EXISTS', own) == 0 then redis.call('ZADD', base .. 'line:' .. b.name, last_turn(b.name), agent) end
  redis.call('ZADD', own, due + (tonumber(sub(live, 8, 8)) - 1) * AGENT_MINUTE, id)
  if not b.waits then
    b.waits = true
    comes_next(b)
  end
  if b.spans then span.needs(agent, id, live, 1) end
end

-- first_in is the first task of an agent in a line, and when it is due; what is gone leaves the line.
local to_serve = weigher()
local function first_in(b, agent)
  while true do
    local id = redis.call('ZRANGE', base .. 'line:' .. b.name .. ':' .. agent, 0, 0)[1]
    if not id then return nil end
    local ref, value = agent .. ':' .. id, redis.call('HGET', base .. 'agents', agent)
    local live, heavy = nil, false
    if value and byte(value) == byte(QUEUED) then live, heavy = to_serve(ref) else live = find(agent, value, id) end
    local due = redis.call('ZSCORE', base .. 'parked:' .. berth(agent), ref)
    if heavy or live and due then return live, id, tonumber(due) end
    if redis.call('ZREM', base .. 'parked:' .. berth(agent), ref) == 1 then unparked(berth(agent), 1) end
    leave_line(agent, id)
  end
end

-- span.needed notes the permits that those need who stand in a line first, if they may start but for that.
function span.needed(b, agents, judge, most)
  span.asking = true
  for i = 1, math.min(#agents, HEADS) do
    local live, id = first_in(b, agents[i])
    if live and judge(agents[i], id, live, b) == true then
      span.needs(agents[i], id, live, math.min(most, tonumber(redis.call('HGET', base .. 'lines', b.name)) or 1), true)
    end
  end
  span.asking = false
end

-- serve takes from a line while there is room in its bucket, one task of each agent in turn. judge says what becomes of a task:
-- true, it is taken; false, it stays, and its agent with it; else where it goes instead. `wanted` are the agents that are asked for.
local function serve(scope, wanted, judge, take, most)
  local name = sub(scope, 3)
  local b = bucket_named(name, own.behind(name))
  local agents = redis.call('ZRANGE', base .. 'line:' .. name, 0, LINE_PAGE - 1)
  if wanted then
    agents = {}
    for i, turn in ipairs(redis.call('ZMSCORE', base .. 'line:' .. name, unpack(wanted))) do
      if turn then agents[#agents + 1] = { wanted[i], tonumber(turn) } end
    end
    table.sort(agents, function(x, y) return x[2] < y[2] or x[2] == y[2] and x[1] < y[1] end)
    for i, a in ipairs(agents) do agents[i] = a[1] end
  end
  local served = true
  while served and #agents > 0 do
    served = false
    local again = {}
    for _, agent in ipairs(agents) do
      if not vacant(b) then break end
      local live, id, due = first_in(b, agent)
      local what = live and judge(agent, id, live, b)
      if what == b then what = false end -- a budget has room for others, but not for a run of this kind
      if what then
        lift(agent, id, live, nil, IS_PARKED, berth(agent))
        if redis.call('ZSCORE', base .. 'line:' .. name, agent) then
          redis.call('ZADD', base .. 'line:' .. name, last_turn(name), agent)
          again[#again + 1] = agent
        end
        take(what, agent, id, live, due)
        served = true
      end
    end
    agents = again
  end
  b.waits = redis.call('HEXISTS', base .. 'lines', name) == 1
  if b.waits and b.spans then span.needed(b, redis.call('ZRANGE', base .. 'line:' .. name, 0, HEADS - 1), judge, most) end
  if b.waits then comes_next(b) else redis.call('ZREM', base .. 'open', scope) end
end

-- span.forget forgets, now and then, the numbers of permits that nobody has brought for long, and which are all given back.
function span.forget()
  if now % EMPTIED > 0 then return end
  local page = redis.call('HSCAN', base .. 'granted', redis.call('HGET', base .. 'granted', SCANNED) or '0', 'COUNT', EMPTIED)
  for i = 1, #page[2], 2 do
    local at = tonumber(string.match(page[2][i + 1], '^%d+|(%d+)'))
    if at and now - at > UNUSED and redis.call('HEXISTS', base .. 'flight', page[2][i]) == 0 then redis.call('HDEL', base .. 'granted', page[2][i]) end
  end
  redis.call('HSET', base .. 'granted', SCANNED, page[1])
end

-- emptied forgets buckets in which nothing has started for so long that they are as new, and periods that are over.
local function emptied()
  local over = redis.call('ZRANGEBYSCORE', base .. 'rates', '-inf', now, 'LIMIT', 0, EMPTIED)
  if #over > 0 then redis.call('ZREM', base .. 'rates', unpack(over)) end
  if redis.call('EXISTS', base .. 'granted') == 1 then span.forget() end
  over = redis.call('ZRANGEBYSCORE', base .. 'periods', '-inf', now, 'LIMIT', 0, EMPTIED)
  if #over > 0 then
    redis.call('ZREM', base .. 'periods', unpack(over))
    redis.call('HDEL', base .. 'spent', unpack(over))
  end
end
