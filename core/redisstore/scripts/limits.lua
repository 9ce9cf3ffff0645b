-- limits: how many tasks of a sort run at once and start within a time, and the lines in which those wait that may not yet.
-- needs: look holds weigh spend

local LIMITS = redis.call('EXISTS', base .. 'limits', base .. 'lines') > 0
local AGENT_MINUTE = 60000 -- ms that a level counts for in the line of an agent
local EACH_AGENT = 'a'
local EACH_KEY = 'k'
local EACH_TASK = 't'
local LINE_PAGE = 50 -- agents of a line that one claim looks at
local EMPTIED = 20 -- buckets with nothing to remember that one claim forgets

-- rules are the limits and the budgets, in the order of their names.
local rules, rule_of = nil, {}
local function limit_of(id, text)
  local kind, key, each = string.match(id, '^([^|]*)|([^|]*)|(%a?)$')
  local runs, starts, per, burst, adapts = string.match(text, '^(%d+)|(%d+)|(%d+)|(%d+)|?(a?)$')
  if not each or not burst then return nil end
  local gap = tonumber(starts) > 0 and per / starts or nil
  local rule = { id = id, kind = kind, key = key, each = each, gap = gap, leeway = gap and gap * burst, adapts = adapts == 'a' }
  rule.runs = tonumber(runs) > 0 and tonumber(runs) or nil
  return rule
end
local function read_rules()
  rules = {}
  local all = redis.call('HGETALL', base .. 'limits')
  for i = 1, #all, 2 do
    local rule = limit_of(all[i], all[i + 1]) or budget_of(all[i], all[i + 1])
    if rule then
      rule.prefix = sub(rule.key, -1) == '*' and sub(rule.key, 1, -2) or nil
      rules[#rules + 1] = rule
      rule_of[all[i]] = rule
    end
  end
  table.sort(rules, function(a, b) return a.id < b.id end)
end

-- bucket_named is what is known of a bucket: how many runs count in it, when it would be empty, what it has used or learned, and whether
-- others wait for it.
local buckets = {}
local function bucket_named(name, rule)
  local b = buckets[name]
  if not b then
    b = { name = name, rule = rule or {}, runs = tonumber(redis.call('HGET', base .. 'flight', name)) or 0, waits = redis.call('HEXISTS', base .. 'lines', name) == 1 }
    b.learned = b.rule.adapts and learned(name)
    b.gap = b.learned and b.learned.gap > 0 and b.learned.gap or b.rule.gap
    b.empty = b.gap and tonumber(redis.call('ZSCORE', base .. 'rates', name)) or 0
    if b.rule.amount then b.spent, b.ends = spent(name) end
    buckets[name] = b
  end
  return b
end

-- buckets_of are those that a task counts in.
local matching = {}
local function buckets_of(agent, id, kind, key)
  if not rules then read_rules() end
  local sort = kind .. '|' .. key
  local found, list = matching[sort], {}
  if not found then
    found = {}
    for _, r in ipairs(rules) do
      local keyed = r.key == '' or r.key == key or r.prefix and key ~= '' and sub(key, 1, #r.prefix) == r.prefix
      if (r.kind == '' or r.kind == kind) and keyed and (r.each ~= EACH_KEY or key ~= '') then found[#found + 1] = r end
    end
    matching[sort] = found
  end
  for i, r in ipairs(found) do
    list[i] = bucket_named(r.id .. '|' .. (r.each == EACH_AGENT and agent or r.each == EACH_KEY and key or r.each == EACH_TASK and agent .. ':' .. id or ''), r)
  end
  return list
end

-- start_at is when a bucket has room for another start, now or before if it has; unless a run has to end first, as `busy` says.
local function start_at(b)
  if b.rule.amount then return b.spent >= b.rule.amount and not b.rule.notify and b.ends or 0 end
  if b.learned then return math.max(b.learned.till, b.gap and b.empty - LATE or 0) end
  return b.gap and b.empty - b.rule.leeway or 0
end
local function busy(b)
  local l = b.learned
  if l and l.probe == PROBE_OUT or l and l.probe == 0 and b.runs >= math.floor(l.allow) then return true end
  return b.rule.runs and b.runs >= b.rule.runs
end
local function vacant(b) return not busy(b) and start_at(b) <= now end

-- full is the first bucket that has no room for a task, or in which others wait that came before it; `from` is the one that lets it
-- go now.
local function full(agent, live, from)
  local id, kind = parse(live)
  for _, b in ipairs(buckets_of(agent, id, kind, key_of(live))) do
    if not vacant(b) or b.waits and b ~= from then return b end
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
  local names = {}
  for i, b in ipairs(buckets_of(agent, id, kind, key_of(live))) do
    names[i] = b.name
    b.runs = b.runs + 1
    redis.call('HSET', base .. 'flight', b.name, b.runs)
    if b.rule.adapts then adapted(b) end
    if b.gap then
      local empty = string.format('%.3f', math.max(b.empty, now) + b.gap)
      b.empty = tonumber(empty)
      redis.call('ZADD', base .. 'rates', empty, b.name)
    end
    if b.rule.unit == UNIT_RUNS then
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
end

-- last_turn is that of who comes last in a line.
local function last_turn(name)
  return (tonumber(redis.call('ZRANGE', base .. 'line:' .. name, -1, -1, 'WITHSCORES')[2]) or 0) + 1
end

-- comes_next sees to it that a line with somebody in it is looked at again: by the next claim, when there is room for a start, or,
-- as it is now, when a run ends.
local function comes_next(b)
  local scope = SCOPE_LIMIT .. b.name
  if busy(b) then
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

-- serve takes from a line while there is room in its bucket, one task of each agent in turn. judge says what becomes of a task:
-- true, it is taken; false, it stays, and its agent with it; else where it goes instead. `wanted` are the agents that are asked for.
local function serve(scope, wanted, judge, take)
  if not rules then read_rules() end
  local name = sub(scope, 3)
  local b = bucket_named(name, rule_of[string.match(name, '^(.*)|[^|]*$')])
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
  if b.waits then comes_next(b) else redis.call('ZREM', base .. 'open', scope) end
end

-- emptied forgets buckets in which nothing has started for so long that they are as new, and periods that are over.
local function emptied()
  local over = redis.call('ZRANGEBYSCORE', base .. 'rates', '-inf', now, 'LIMIT', 0, EMPTIED)
  if #over > 0 then redis.call('ZREM', base .. 'rates', unpack(over)) end
  over = redis.call('ZRANGEBYSCORE', base .. 'periods', '-inf', now, 'LIMIT', 0, EMPTIED)
  if #over > 0 then
    redis.call('ZREM', base .. 'periods', unpack(over))
    redis.call('HDEL', base .. 'spent', unpack(over))
  end
end
