-- spend: what runs use of budgets, and usually do, and what limits learn from runs that are told to come back later.
-- needs: look bounded

local NEVER = '0000000000000' -- the end of a hold that lasts
local A_MINUTE = 60000
local AN_HOUR = 3600000
local A_DAY = 86400000
local UNIT_RUNS = 'runs'
local ONE = 1000000 -- of an amount, in millionths
local MOST_SPENT = 9000000000000000000 -- what a counter of Redis can hold
local PROBE_WANTED = 1
local PROBE_OUT = 2
local MARGIN = 103 -- in a hundred: how much slower than measured a key is asked after it has refused
local LONG = 120000 -- ms without a refusal after which the pace was right but for a little
local FASTER = 12000000 -- ms without a refusal in which it is asked twice as fast, at first: one in two hundred faster a minute
local TRUST = 600000 -- ms without a refusal after which that is twice as much
local LATE = 100 -- ms of starts that may be made up for
local ADAPTS = '|as?$' -- at the end of a limit that does
local HOME = '^' -- in front of the name of a bucket that spans partitions, where it is counted for all
local SERVED = 's'
local LAST_RUNS = 20 -- of a kind, by which it is known what one usually uses
local OWN = '^[^|]*|[^|]*|o' -- names of limits and budgets of the profile of an agent

-- span is what buckets that span partitions need (a table, as a script has only so many names): see limits. hands has what the caller brings for
-- them, from their homes: how many permits are left, how many there were, and how long to wait before it asks again. wants is how many it should
-- ask for, asking that this is being found out, and reports what their homes are to be told.
local span = { hands = {}, wants = {}, asking = false, reports = {} }

-- budget_of reads a budget: nil for a limit.
local function budget_of(id, text)
  local kind, key, each, unit, per = string.match(id, '^([^|]*)|([^|]*)|(%a?)%$([%w_]+)%$(%a)$')
  local amount, next_, clock, note = string.match(text or '', '^(%d+)|(%a)|([-%d,]+)|[^|]*|(.*)$')
  if not amount or not unit then return nil end
  return {
    id = id, kind = kind, key = key, each = each, unit = unit, per = per, amount = tonumber(amount), clock = clock,
    spans = string.lower(next_) ~= next_, notify = string.lower(next_) == 'n', note = string.lower(next_) == 'p' and note or nil,
  }
end

-- ahead_at is how far local time is ahead of UTC at a time, and since when.
local function ahead_at(clock, at)
  local ahead, since = 0, 0
  for by, till in string.gmatch(clock, '(-?%d+),?(%d*)') do
    ahead = tonumber(by)
    if till == '' or at < tonumber(till) then break end
    since = tonumber(till)
  end
  return ahead, since
end

-- month_after is when the month after that of a day begins, as a day: the years of this count begin in March.
local function month_after(day)
  local floor = math.floor
  local z = day + 719468
  local era = floor(z / 146097)
  local of_era = z - era * 146097
  local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
  local month = floor((5 * of_year + 2) / 153) + 1
  if month < 12 then return day - of_year + floor((153 * month + 2) / 5) end
  year = year + 1
  if year == 400 then era, year = era + 1, 0 end
  return era * 146097 + 365 * year + floor(year / 4) - floor(year / 100) - 719468
end

-- period_end is when the period of a budget is over that a time is in.
local function period_end(rule, at)
  local ahead = ahead_at(rule.clock, at)
  local local_, ends = at + ahead, nil
  if rule.per == 'h' then
    ends = (math.floor(local_ / AN_HOUR) + 1) * AN_HOUR
  elseif rule.per == 'm' then
    ends = month_after(math.floor(local_ / A_DAY)) * A_DAY
  else
    ends = (math.floor(local_ / A_DAY) + 1) * A_DAY
  end
  local later, since = ahead_at(rule.clock, ends - ahead)
  if later ~= ahead then return math.max(ends - later, since) end -- clocks are changed before
  return ends - ahead
end

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
    ends = period_end(rule, now)
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

-- learned is what is known of a bucket that adapts: how many runs at once, ms between two starts or 0, since when those were counted
-- that were served, how many, until when nothing starts, whether one is to go first, and when it was last heard of. keep writes it.
local function learned(name)
  local text = redis.call('HGET', base .. 'learned', name)
  if not text then return nil end
  local l = {}
  for n in string.gmatch(text, '[^|]+') do l[#l + 1] = tonumber(n) end
  return { allow = l[1], gap = l[2], since = l[3], served = l[4], till = l[5], probe = l[6], heard = l[7] }
end
local function keep(name, l)
  redis.call('HSET', base .. 'learned', name, string.format('%.17g|%.17g|%.0f|%.0f|%.0f|%d|%.0f', l.allow, l.gap, l.since, l.served, l.till, l.probe, l.heard))
end

-- paced is the pace after a refusal, known once a run is served again: a little slower than what was asked, or, if that is unknown or
-- was refused before long, than what was served from the end of one refusal to that of the next. That holds for whoever counts in windows,
-- and for whoever refills.
local function paced(l)
  if l.served > 0 and (l.gap == 0 or l.till - l.since < LONG) then return (l.till - l.since) / l.served * MARGIN / 100 end
  return l.gap * MARGIN / 100
end

-- learn notes that a run of a bucket was served, or, with a wait, told to come back after it. `runs` is how many there were with it, and
-- `most` how many there may be, 0 for any number.
local function learn(name, runs, most, wait)
  local l = learned(name)
  if not l then return end
  if wait then
    if now >= l.till then l.allow, l.probe = math.max(1, l.allow / 2), PROBE_WANTED end -- else it is of those that were under way
    l.till = math.max(l.till, now + wait)
  elseif now < l.till then
    l.served = l.served + 1
  else
    if l.probe == PROBE_OUT then l.gap, l.since, l.served, l.probe = paced(l), l.till, 0, 0 end
    l.served = l.served + 1
    if runs >= math.floor(l.allow) then
      l.allow = l.allow + 1 / l.allow
      if most > 0 then l.allow = math.min(most, l.allow) end
    end
    local busy = l.gap > 0 and tonumber(redis.call('ZSCORE', base .. 'rates', name))
    if busy and busy > now then
      local ms = math.min(math.max(now - l.heard, 0), A_MINUTE)
      l.gap = l.gap * (1 - math.min(ms / FASTER * (1 + math.max(now - l.since, 0) / TRUST), 1 / 2)) -- never more than twice as fast
    end
  end
  l.heard = now
  keep(name, l)
end

-- own.usual is what a run of a kind is reckoned to use of a unit: what nine in ten of the last ones have used at most, and the most that one of
-- them has; else what the caller expects; nil if nothing is known.
own.known = {}
function own.usual(kind, unit)
  local name = kind .. '|' .. unit
  local u = own.known[name]
  if u == nil then
    local last = {}
    for n in string.gmatch(redis.call('HGET', base .. 'usual', name) or '', '%d+') do last[#last + 1] = tonumber(n) end
    table.sort(last)
    if #last > 0 then
      -- guard: reserve-usual
      u = { last[math.ceil(#last * 9 / 10)], last[#last] }
    else
      local expected = own.expected and own.expected[name]
      u = expected and { expected, expected } or false
    end
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
function own.note_use(kind, unit, amount)
  local name = kind .. '|' .. unit
  local all = redis.call('HGET', base .. 'usual', name)
  all = (all and all .. ',' or '') .. string.format('%.0f', amount)
  if select(2, string.gsub(all, ',', '')) >= LAST_RUNS then all = string.match(all, ',(.*)') end
  redis.call('HSET', base .. 'usual', name, all)
end

-- own.units reads amounts by their units: unit=amount in lines.
function own.units(text)
  local all = {}
  for unit, amount in string.gmatch(text or '', '([%w_]+)=(%d+)') do all[unit] = tonumber(amount) end
  return all
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
-- that is known, that of the last that is given back, how it was answered, and what was used here in the period, a |, and when that ends.
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
    local id = string.match(name, '^(.*)|[^|]*$')
    local rule = budget_of(id, redis.call('HGET', base .. 'limits', id))
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
local function after_run(buckets, used, answer, gone, crossed, kind)
  local adapts, noted, before = redis.call('EXISTS', base .. 'learned') == 1, {}, own.units(buckets.charged)
  for _, b in ipairs(buckets) do
    local name, runs = b[1], b[2]
    local id = string.match(name, '^(.*)|[^|]*$')
    local unit = string.match(id, '%$([%w_]+)%$%a$')
    if unit and unit ~= UNIT_RUNS and answer ~= '-' and not noted[unit] then
      noted[unit] = true
      own.note_use(kind, unit, used[unit] or 0)
    end
    if USES and USES.granted and redis.call('HEXISTS', base .. 'granted', name) == 1 then
      span.report(name, runs, answer, unit, unit and used[unit])
    elseif unit and used[unit] or adapts and not unit then
      local text = own.text(name, id)
      local rule = unit and budget_of(id, text)
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
