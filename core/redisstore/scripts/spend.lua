-- spend: what runs use of budgets, and usually do, and what limits learn from runs that are told to come back later.
-- needs: look counting bounded

local NEVER = '0000000000000' -- the end of a hold that lasts
local MOST_SPENT = 9000000000000000000 -- what a counter of Redis can hold
local ADAPTS = '|as?$' -- at the end of a limit that does
local HOME = '^' -- in front of the name of a bucket that spans partitions, where it is counted for all
local SERVED = 's'
local OWN = '^[^|]*|[^|]*|o' -- names of limits and budgets of the profile of an agent

-- span is what buckets that span partitions need (a table, as a script has only so many names): see limits. hands has what the caller brings for
-- them, from their homes: how many permits are left, how many there were, and how long to wait before it asks again. wants is how many it should
-- ask for, asking that this is being found out, and reports what their homes are to be told.
local span = { hands = {}, wants = {}, asking = false, reports = {} }

-- spent is what a bucket has used in the period that is now, and when that ends; nil if it has used nothing yet.
local function spent(name)
  local ends = tonumber(redis.call('ZSCORE', base .. 'periods', name))
  if not ends or ends <= now then return 0, nil end
  return tonumber(redis.call('HGET', base .. 'spent', name)) or 0, ends
end

-- hold_now pauses a scope until somebody resumes it. A hold without an end that it has already stays: it may be an operator's.
local function hold_now(scope, said)
  local old = redis.call('HGET', base .. 'holds', scope)
  if lasting(old) and sub(old, 1, 13) == NEVER then return end
  local since = lasting(old) and sub(old, 14, 26) or string.format('%013.0f', math.max(now, (redis.call('HGET', base .. 'counters', 'ordered') or 0) + 1)) -- as in hold.lua
  redis.call('HSET', base .. 'holds', scope, NEVER .. since .. said)
  redis.call('ZREM', base .. 'leases', HELD .. scope)
  redis.call('ZREM', base .. 'open', scope) -- what was not put back yet stays where it is
end

-- spend charges a bucket of a budget. It returns whether it is used up by this, and its period; of a task
-- that is gone nothing is left to pause.
local function spend(name, rule, amount, gone)
  local before, ends = spent(name)
  if ends then
    if before < MOST_SPENT then redis.call('HINCRBY', base .. 'spent', name, string.format('%.0f', amount)) end
  else
    ends = counting.period_end(rule, now)
    redis.call('ZADD', base .. 'periods', string.format('%.0f', ends), name)
    redis.call('HSET', base .. 'spent', name, string.format('%.0f', amount))
  end
  if rule.spans and byte(name) ~= byte(HOME) or before >= rule.amount or before + amount < rule.amount then return false, ends end
  if rule.note and not (gone and rule.each == 't') then
    local of = sub(name, #rule.id + (rule.spans and 3 or 2))
    local scope = SCOPE_ALL
    if rule.each == 'a' or rule.each == 'o' then scope = SCOPE_AGENT .. of
    elseif rule.each == 't' then scope = SCOPE_TASK .. of
    elseif rule.each == 'k' then scope = SCOPE_KEY .. of
    elseif rule.key ~= '' then scope = SCOPE_KEY .. rule.key
    elseif rule.kind ~= '' then scope = SCOPE_KIND .. rule.kind end
    hold_now(scope, rule.note)
  end
  return true, ends
end

-- learned is what is known of a bucket that adapts, and keep writes it. learn notes how one of its runs was answered: see counting.
local function learned(name) return counting.learned(redis.call('HGET', base .. 'learned', name)) end
local function keep(name, l) redis.call('HSET', base .. 'learned', name, counting.text(l)) end
-- rule: learned
local function learn(name, runs, most, wait)
  local l = learned(name)
  if not l then return end
  counting.learn(l, runs, most, wait, function() return tonumber(redis.call('ZSCORE', base .. 'rates', name)) end)
  keep(name, l)
end

-- own.usual is what a run of a kind is reckoned to use of a unit; else what the caller expects; nil if nothing is known.
own.known = {}
function own.usual(kind, unit)
  local name = kind .. '|' .. unit
  local u = own.known[name]
  if u == nil then
    local expected = own.expected and own.expected[name]
    u = counting.usual(redis.call('HGET', base .. 'usual', name)) or expected and { expected, expected } or false
    own.known[name] = u
  end
  return u
end

-- own.expect reads what the caller expects runs to use: a line of =, the kind, the unit and the amount, with tabs.
function own.expect(text)
  own.expected = {}
  for kind, unit, amount in string.gmatch(text, '=([^\t\n]+)\t([%w_]+)\t(%d+)\n') do own.expected[kind .. '|' .. unit] = tonumber(amount) end
end

-- own.note_use keeps what a run of a kind has used of a unit, for those to come: see own.usual.
-- rule: usual
function own.note_use(kind, unit, amount)
  local name = kind .. '|' .. unit
  redis.call('HSET', base .. 'usual', name, counting.used_by(redis.call('HGET', base .. 'usual', name), { amount }))
end

-- own.unreserve_some gives back what a bucket has kept for a run, up to what the run has been charged.
function own.unreserve_some(ref, name, amount)
  local kept = redis.call('HGET', base .. 'reserves', ref)
  local all, untried = string.match(redis.call('HGET', base .. 'reserved', name) or '', '^(%d+)|(%d+)$')
  if not kept or not all or amount == 0 then return end
  local left = string.gsub(kept, '(%d+) ([^\n]+)', function(of, bucket)
    if bucket ~= name then return nil end
    local less = math.min(tonumber(of), amount)
    all = math.max(all - less, 0)
    return string.format('%.0f %s', of - less, bucket)
  end)
  redis.call('HSET', base .. 'reserves', ref, left)
  redis.call('HSET', base .. 'reserved', name, string.format('%.0f|%.0f', all, untried))
end

-- after_run charges what a run has used, and notes how it was answered: 'w' and for how long it was told to wait, '-' if it has asked
-- nobody, else it was served. `buckets` are those that it counted in, each with how many runs it had; what it has used up is told
-- to `crossed`. Of what spans partitions all that is for its home: span.reports has for each such run and bucket its name, the number of the last permit
-- that is known, that of the last that is given back, how it was answered, and what was used here in the period, a |, and when that ends. given_back is
-- when a run was claimed that has not begun, ms.
local limits_read = {}
function own.text(name, id) -- what the rule of a bucket allows; '' if it was lifted
  if string.match(id, OWN) then return own.allowed(sub(name, #id + 2), id) end
  limits_read[id] = limits_read[id] or redis.call('HGET', base .. 'limits', id) or ''
  return limits_read[id]
end
function span.granted(name)
  local number, first, unused = string.match(redis.call('HGET', base .. 'granted', name) or '', '^(%d+)|%d+|(%d+)|(%d+)$')
  return { number = tonumber(number) or 0, first = first or '0', unused = tonumber(unused) or 0 }
end
function span.report(name, runs, answer, unit, amount)
  local number, used = span.granted(name).number, ''
  if unit and amount then
    local id = counting.split(name)
    local rule = counting.budget(id, redis.call('HGET', base .. 'limits', id))
    if rule then
      spend(name, rule, amount)
      local all, ends = spent(name)
      used = string.format('%.0f|%.0f', all, ends)
    end
  end
  for _, v in ipairs({ name, string.format('%.0f', number), string.format('%.0f', number - runs + 1), answer == '' and SERVED or answer, used }) do
    span.reports[#span.reports + 1] = v
  end
end
-- unspend gives a run back that a budget of runs has counted when it was claimed, and that has not begun, if that was in the period that is now.
function own.unspend(name, id, claimed)
  local rule, before, ends = counting.budget(id, own.text(name, id)), spent(name)
  -- guard: budget-given-back-on-redis
  if not rule or not ends or counting.period_end(rule, claimed) ~= ends then return end
  redis.call('HSET', base .. 'spent', name, string.format('%.0f', math.max(before - ONE, 0)))
end
local function after_run(buckets, used, answer, gone, crossed, kind, given_back)
  local adapts, noted, before = redis.call('EXISTS', base .. 'learned') == 1, {}, counting.units(buckets.charged)
  for _, b in ipairs(buckets) do
    local name, runs = b[1], b[2]
    local id = counting.split(name)
    local unit = string.match(id, '%$([%w_]+)%$%a$')
    if unit and unit ~= UNIT_RUNS and answer ~= '-' and not noted[unit] then
      noted[unit] = true
      own.note_use(kind, unit, used[unit] or 0)
    end
    if USES and USES.granted and redis.call('HEXISTS', base .. 'granted', name) == 1 then
      span.report(name, runs, answer, unit, unit and used[unit])
    elseif unit == UNIT_RUNS and given_back then
      own.unspend(name, id, given_back)
    elseif unit and used[unit] or adapts and not unit then
      local text = own.text(name, id)
      local rule = unit and counting.budget(id, text)
      if rule then
        -- guard: charged-once-on-redis
        local over, ends = spend(name, rule, math.max(used[unit] - (before[unit] or 0), 0), gone)
        if over then crossed(name, ends) end
      elseif string.find(text, ADAPTS) then
        if answer == '-' then
          unprobed(name)
        else
          learn(name, runs, tonumber(string.match(text, '^%d+')), tonumber(sub(answer, 2)))
        end
      end
    end
  end
end
