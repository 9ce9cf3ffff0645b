-- counting: what limits and budgets allow, when a period ends, and what a limit that adapts learns: reckoned from what has been read. Full
--        scripts and plain ones share it.
-- needs: layout alone

local A_MINUTE = 60000
local AN_HOUR = 3600000
local A_DAY = 86400000
local UNIT_RUNS = 'runs'
local ONE = 1000000 -- of an amount, in millionths
local PROBE_WANTED = 1
local PROBE_OUT = 2
local MARGIN = 103 -- in a hundred: how much slower than measured a key is asked after it has refused
local LONG = 120000 -- ms without a refusal after which the pace was right but for a little
local FASTER = 12000000 -- ms without a refusal in which it is asked twice as fast, at first: one in two hundred faster a minute
local TRUST = 600000 -- ms without a refusal after which that is twice as much
local LATE = 100 -- ms of starts that may be made up for
local EACH_AGENT = 'a'
local EACH_KEY = 'k'
local EACH_TASK = 't'
local GOOD_FOR = 250 -- ms for which a permit is good that was given for a rate, at most
local PART_OF_RATE = 20 -- the part of a rate's time that it is good for, else: the rate is as much slower, so that no window holds more than it may
local FEW_FIELDS = 16
local EMPTIED = 20 -- buckets with nothing to remember that one claim forgets, at least
local MOST_BUCKETS = 2000 -- of a plain call: a command of a script has some thousands of arguments at most
local LONG_FIELD = '.................................................................' -- longer than hash-max-listpack-value
local LAST_RUNS = 20 -- of a kind, by which it is known what one usually uses

-- with_counting makes what follows only for a call that needs it. It is given what it uses, as each name from outside costs a call that does not.
local function with_counting(base, now)
  local counting, floor, sub = {}, math.floor, string.sub

  -- listed are the names in a value of `bounds`, each with what it allows behind it.
  function counting.listed(text)
    local list, at = {}, 1
    while at <= #(text or '') do
      local length = string.match(text, '^%d+', at)
      at = at + #length + 1
      local id = string.match(text, '^[^\t]+', at)
      list[#list + 1] = id
      list[#list + 1] = sub(text, at + #id + 1, at + length - 1)
      at = at + length
    end
    return list
  end

  -- budget reads a budget: nil for a limit.
  function counting.budget(id, text)
    local kind, key, each, unit, per = string.match(id, '^([^|]*)|([^|]*)|(%a?)%$([%w_]+)%$(%a)$')
    local amount, next_, clock, note = string.match(text or '', '^(%d+)|(%a)|([-%d,]+)|[^|]*|(.*)$')
    if not amount or not unit then return nil end
    return {
      id = id, kind = kind, key = key, each = each, unit = unit, per = per, amount = tonumber(amount), clock = clock,
      spans = string.lower(next_) ~= next_, notify = string.lower(next_) == 'n', note = string.lower(next_) == 'p' and note or nil,
    }
  end

  -- rule reads a limit or a budget; nil if it is neither.
  function counting.rule(id, text)
    local kind, key, each = string.match(id, '^([^|]*)|([^|]*)|(%a?)$')
    local runs, starts, per, burst, adapts, spans = string.match(text, '^(%d+)|(%d+)|(%d+)|(%d+)|?(a?)(s?)$')
    if not each or not burst then return counting.budget(id, text) end
    local gap = tonumber(starts) > 0 and per / starts or nil
    local rule = { id = id, kind = kind, key = key, each = each, gap = gap, leeway = gap and gap * burst, adapts = adapts == 'a', spans = spans == 's' }
    rule.slack = gap and floor(math.min(GOOD_FOR, per / PART_OF_RATE)) or GOOD_FOR
    rule.wide = gap and (per + rule.slack) / starts
    rule.runs = tonumber(runs) > 0 and tonumber(runs) or nil
    return rule
  end

  -- about gives a rule what applies asks for.
  function counting.about(rule)
    rule.prefix = sub(rule.key, -1) == '*' and sub(rule.key, 1, -2) or nil
    return rule
  end

  -- applies says whether a task counts under a rule.
  function counting.applies(r, kind, key)
    local keyed = r.key == '' or r.key == key or r.prefix and key ~= '' and sub(key, 1, #r.prefix) == r.prefix
    return (r.kind == '' or r.kind == kind) and keyed and (r.each ~= EACH_KEY or key ~= '')
  end

  -- bucket is the name of that in which a task counts under a rule of all agents.
  function counting.bucket(r, agent, ref, key)
    return r.id .. '|' .. (r.each == EACH_AGENT and agent or r.each == EACH_KEY and key or r.each == EACH_TASK and ref or '')
  end

  -- split is the name of the rule of a bucket, and what that counts apart, which may be a task of any id.
  -- guard: bucket-of-any-id
  function counting.split(name) return string.match(name, '^([^|]*|[^|]*|[^|]*)|(.*)$') end

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

  -- period_end is when the period of a budget is over that a time is in, as a number and as text. The buckets of a rule ask for the same.
  local function end_of(rule, at)
    local ahead = ahead_at(rule.clock, at)
    local local_, ends = at + ahead, nil
    if rule.per == 'h' then
      ends = (floor(local_ / AN_HOUR) + 1) * AN_HOUR
    elseif rule.per == 'm' then
      ends = month_after(floor(local_ / A_DAY)) * A_DAY
    else
      ends = (floor(local_ / A_DAY) + 1) * A_DAY
    end
    local later, since = ahead_at(rule.clock, ends - ahead)
    if later ~= ahead then return math.max(ends - later, since) end -- clocks are changed before
    return ends - ahead
  end
  function counting.period_end(rule, at)
    if rule.at ~= at then
      rule.at, rule.ends = at, end_of(rule, at)
      rule.ends_text = string.format('%.0f', rule.ends)
    end
    return rule.ends, rule.ends_text
  end

  -- started is when a bucket with a rate would be empty again, if it would at `empty` before another start; to the microsecond.
  function counting.started(empty, gap) return floor((math.max(empty, now) + gap) * 1000 + 0.5) / 1000 end

  -- learned reads what is known of a bucket that adapts: how many runs at once, ms between two starts or 0, since when those were counted
  -- that were served, how many, until when nothing starts, whether one is to go first, and when it was last heard of. text is that again.
  function counting.learned(text)
    if not text then return nil end
    local l = {}
    for n in string.gmatch(text, '[^|]+') do l[#l + 1] = tonumber(n) end
    return { allow = l[1], gap = l[2], since = l[3], served = l[4], till = l[5], probe = l[6], heard = l[7] }
  end
  function counting.text(l)
    return string.format('%.17g|%.17g|%.0f|%.0f|%.0f|%d|%.0f', l.allow, l.gap, l.since, l.served, l.till, l.probe, l.heard)
  end

  -- paced is the pace after a refusal, known once a run is served again: a little slower than what was asked, or, if that is unknown or
  -- was refused before long, than what was served from the end of one refusal to that of the next. That holds for whoever counts in windows,
  -- and for whoever refills.
  local function paced(l)
    if l.served > 0 and (l.gap == 0 or l.till - l.since < LONG) then return (l.till - l.since) / l.served * MARGIN / 100 end
    return l.gap * MARGIN / 100
  end

  -- learn notes that a run of a bucket was served, or, with a wait, told to come back after it. `runs` is how many there were with it, `most` how
  -- many there may be, 0 for any number, and `busy` tells when its rate would be empty, if it has one.
  function counting.learn(l, runs, most, wait, busy)
    if wait then
      if now >= l.till then l.allow, l.probe = math.max(1, l.allow / 2), PROBE_WANTED end -- else it is of those that were under way
      l.till = math.max(l.till, now + wait)
    elseif now < l.till then
      l.served = l.served + 1
    else
      if l.probe == PROBE_OUT then l.gap, l.since, l.served, l.probe = paced(l), l.till, 0, 0 end
      l.served = l.served + 1
      if runs >= floor(l.allow) then
        l.allow = l.allow + 1 / l.allow
        if most > 0 then l.allow = math.min(most, l.allow) end
      end
      local empty = l.gap > 0 and busy()
      if empty and empty > now then
        local ms = math.min(math.max(now - l.heard, 0), A_MINUTE)
        l.gap = l.gap * (1 - math.min(ms / FASTER * (1 + math.max(now - l.since, 0) / TRUST), 1 / 2)) -- never more than twice as fast
      end
    end
    l.heard = now
  end

  -- usual is what a run is reckoned to use, by what the last ones have used: what nine in ten of them have at most, and the most that one has; nil
  -- if nothing is known. used_by adds what other runs have used.
  function counting.usual(text)
    local last = {}
    for n in string.gmatch(text or '', '%d+') do last[#last + 1] = tonumber(n) end
    if #last == 0 then return nil end
    table.sort(last)
    -- guard: reserve-usual
    return { last[math.ceil(#last * 9 / 10)], last[#last] }
  end
  function counting.used_by(text, amounts)
    local all = {}
    for n in string.gmatch(text or '', '%d+') do all[#all + 1] = n end
    for i = math.max(1, #amounts - LAST_RUNS + 1), #amounts do all[#all + 1] = string.format('%.0f', amounts[i]) end
    return table.concat(all, ',', math.max(1, #all - LAST_RUNS + 1))
  end

  -- units reads amounts by their units: unit=amount in lines.
  function counting.units(text)
    local eq = text and string.find(text, '=', 1, true)
    local its = eq and tonumber(sub(text, eq + 1))
    if its then return { [sub(text, 1, eq - 1)] = its } end -- one unit, mostly
    local all = {}
    for unit, amount in string.gmatch(text or '', '([%w_]+)=(%d+)') do all[unit] = tonumber(amount) end
    return all
  end

  -- put_all writes fields of a hash. It sees to it that one which is about to have more than a few is none that Redis searches from its beginning for each
  -- field, as it does those of short fields up to some hundreds: a long one makes it another for as long as it is there.
  function counting.put_all(key, pairs_)
    if #pairs_ == 0 then return end
    local there = redis.call('HLEN', base .. key)
    local grows = there <= FEW_FIELDS and there + #pairs_ / 2 > FEW_FIELDS
    if grows then redis.call('HSET', base .. key, '', LONG_FIELD) end
    redis.call('HSET', base .. key, unpack(pairs_))
    if grows then redis.call('HDEL', base .. key, '') end
  end
  return counting
end
