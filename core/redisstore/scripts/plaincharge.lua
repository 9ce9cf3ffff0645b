-- plaincharge: limits and budgets of a plain claim: its tasks are counted together, where there is room for all of them and nobody waits for any.
-- needs: counting

local MOST_EXACT = 9000000000000000 -- below which sums of amounts are exact

-- with_charges makes what follows only for a claim that needs it: of the limits and budgets of all agents, nil if some are counted elsewhere too.
-- rule: limits
local function with_charges(all, counting, base, now)
  local charges, by_kind, of_sort, of_agent = {}, {}, {}, {}
  -- Of each bucket its place, by its name; of each place the name, the rule, how many are to be taken, and how many run. What else there is to know of
  -- some is in lists by their places, too: a table for each bucket costs as much as a command for a few fields.
  local places, names, ruled, counts, runs, n = {}, {}, {}, {}, {}, 0
  local rated, learning, spending, reserving = {}, {}, {}, {} -- places of a sort
  local learned, gaps, empties, ends, spent, after = {}, {}, {}, {}, {}, {}
  local whose, keeps, kept, untried_, reserves, reserved_at = {}, {}, {}, {}, {}, {} -- whose amount is reserved: task, kind, ..; what is kept then, in all and for each task
  local uses, nuses, none = {}, 0, {}
  local early, closed = nil, {} -- tasks that are not due yet: places of each that it counts in; places in which none of these may
  for i = 1, #all, 2 do
    local kind, key, each = string.match(all[i], '^([^|]*)|([^|]*)|(%a?)')
    if not kind or string.find(all[i + 1], 's$') or string.find(all[i + 1], '^%d+|%u') then return nil end
    local of = by_kind[kind] or {}
    by_kind[kind] = of
    of[#of + 1] = counting.about({ id = all[i], kind = kind, key = key, each = each, text = all[i + 1] })
  end

  -- some says whether there are rules for a kind, of whatever keys.
  function charges.some(kind) return by_kind[kind] or by_kind[''] end

  local function place_of(name, rule)
    n = n + 1
    places[name], names[n], ruled[n], counts[n] = n, name, rule, 0
    if rule.adapts then learning[#learning + 1] = n elseif rule.gap then rated[#rated + 1] = n end
    if rule.amount then
      spending[#spending + 1] = n
      if rule.unit ~= UNIT_RUNS then reserving[#reserving + 1], whose[n] = n, none end
    end
    return n
  end

  -- rules are those that a task counts under, in the order of their names, with the names of their buckets and what `uses` has of these, if they are the
  -- same for all tasks; nil if one of them cannot be read.
  function charges.rules(kind, key)
    local sorts = of_sort[kind] or {}
    of_sort[kind] = sorts
    if sorts[key] then return sorts[key] end
    local found, each = {}, false
    for _, of in ipairs({ by_kind[kind] or {}, by_kind[''] or {} }) do
      for _, r in ipairs(of) do
        if counting.applies(r, kind, key) then
          r.whole = r.whole or counting.rule(r.id, r.text)
          if not r.whole then return nil end
          found[#found + 1] = r.whole
          each = each or r.whole.each == EACH_AGENT or r.whole.each == EACH_TASK
        end
      end
    end
    if #found > 1 then table.sort(found, function(a, b) return a.id < b.id end) end
    if #found > 0 and not each then
      found.same = {}
      for i, r in ipairs(found) do found.same[i] = counting.bucket(r, '', '', key) end
      found.text = table.concat(found.same, '\n')
    end
    sorts[key] = found
    return found
  end

  -- own are the rules of the profile of an agent.
  -- rule: bounds
  local function own(agent, text)
    local found = of_agent[agent]
    if found then return found end
    found = {}
    local listed = counting.listed(text)
    for i = 1, #listed, 2 do
      local r = counting.rule(listed[i], listed[i + 1])
      if r then found[#found + 1] = counting.about(r) end
    end
    table.sort(found, function(a, b) return a.id < b.id end)
    of_agent[agent] = found
    return found
  end

  local function enter(at, ref, kind)
    counts[at] = counts[at] + 1
    local of = whose[at]
    if of == none then
      whose[at] = { ref, kind }
    elseif of then
      of[#of + 1], of[#of + 2] = ref, kind
    end
  end

  -- wait notes a task that is not due yet, for admit. It counts in nothing so far.
  function charges.wait(i, agent, ref, kind, key, text, due)
    local found, its, uses_ = charges.rules(kind, key), { ref = ref, kind = kind, due = due }, {}
    early = early or {}
    early[i] = false
    local function add(r, name)
      if n >= MOST_BUCKETS then return false end
      its[#its + 1], uses_[#uses_ + 1] = places[name] or place_of(name, r), name
      return true
    end
    if not found then return end
    for _, r in ipairs(found) do
      if not add(r, counting.bucket(r, agent, ref, key)) then return end
    end
    for _, r in ipairs(text and own(agent, text) or none) do
      if counting.applies(r, kind, key) and not add(r, r.id .. '|' .. agent) then return end
    end
    if #uses_ > 0 then its.uses = table.concat(uses_, '\n') end
    early[i] = its
  end

  -- count notes that a task is to be taken; `text` is what `bounds` has of its agent. It returns whether that can be reckoned here.
  function charges.count(agent, ref, kind, key, text)
    local found, uses_ = charges.rules(kind, key), nil
    if not found then return false end
    if found.same then
      uses_ = found.text
      for i = 1, #found do enter(places[found.same[i]] or place_of(found.same[i], found[i]), ref, kind) end
    else
      for i = 1, #found do
        local r = found[i]
        local name = counting.bucket(r, agent, ref, key)
        enter(places[name] or place_of(name, r), ref, kind)
        uses_ = uses_ and uses_ .. '\n' .. name or name
      end
    end
    for _, r in ipairs(text and own(agent, text) or none) do
      if counting.applies(r, kind, key) then
        local name = r.id .. '|' .. agent
        enter(places[name] or place_of(name, r), ref, kind)
        uses_ = uses_ and uses_ .. '\n' .. name or name
      end
    end
    if uses_ then
      uses[nuses + 1], uses[nuses + 2] = ref, uses_
      nuses = nuses + 2
    end
    -- guard: plain-charge-many
    return n <= MOST_BUCKETS
  end

  local function read(some, command, key)
    local of = #some == n and names or {}
    for i = #of + 1, #some do of[i] = names[some[i]] end
    return #of > 0 and redis.call(command, base .. key, unpack(of)) or none
  end

  -- Of a rate each start has to be in time by itself, as if they came one after the other.
  local function in_time(at, empty)
    local leeway, gap = learned[at] and LATE or ruled[at].leeway, gaps[at] or ruled[at].gap
    for _ = 1, counts[at] do
      if empty - leeway > now then return false end
      empty = counting.started(empty, gap)
    end
    empties[at] = empty
    return true
  end

  local known = {}
  local function usual(kind, unit)
    local of = known[unit] or {}
    known[unit] = of
    if of[kind] == nil then
      local u = counting.usual(redis.call('HGET', base .. 'usual', kind .. '|' .. unit))
      if u then u.text = string.format('%.0f', u[2]) end
      of[kind] = u or false
    end
    return of[kind]
  end

  -- keep reserves what a run usually uses.
  local function keep(at, ref, u)
    if u[2] == 0 then return end
    local reserved, untried = kept[at], untried_[at]
    keeps[at] = reserved + untried == 0 and u.text .. '|0' or string.format('%.0f|%.0f', reserved + u[2], untried)
    kept[at] = reserved + u[2]
    local text = u.text .. ' ' .. names[at]
    if reserved_at[ref] then
      reserves[reserved_at[ref]] = reserves[reserved_at[ref]] .. '\n' .. text
    else
      reserves[#reserves + 1], reserves[#reserves + 2] = ref, text
      reserved_at[ref] = #reserves
    end
  end

  -- reserve keeps what the tasks of a bucket usually use, if there is room for each beside those under way: see own.tight and own.reserve.
  local function reserve(at, all_)
    local rule, of, untried = ruled[at], whose[at], 0
    kept[at] = 0
    if runs[at] > 0 and all_ then
      local bar = string.find(all_, '|', 1, true)
      kept[at], untried = tonumber(sub(all_, 1, bar - 1)), tonumber(sub(all_, bar + 1))
    end
    untried_[at] = untried
    for k = 1, #of, 2 do
      local u = usual(of[k + 1], rule.unit)
      if not u or not rule.notify and kept[at] + untried > 0 and spent[at] + kept[at] + u[1] > rule.amount then return false end
      keep(at, of[k], u)
    end
    return spent[at] + kept[at] < MOST_EXACT
  end

  -- roomy says whether half of what a bucket allows stays free if it takes a task that is not due yet, so that what falls due meanwhile finds room.
  -- Where one run may go at a time, it may be this one.
  local function roomy(at, its)
    local rule, due = ruled[at], its.due
    local most = math.min(learned[at] or math.huge, rule.runs or math.huge)
    -- guard: plain-ahead-limit
    if closed[at] or gaps[at] or runs[at] + counts[at] + 1 > math.max(math.floor(most / 2), 1) then return false end
    -- guard: plain-ahead-rate
    if rule.gap and math.max(empties[at], due) + rule.gap - due > math.max(rule.leeway / 2, rule.gap) then return false end
    if not rule.amount then return true end
    if not whose[at] then return due < counting.period_end(rule, now) and 2 * (after[at] + ONE) <= rule.amount end
    local u = usual(its.kind, rule.unit)
    return u and untried_[at] == 0 and 2 * (spent[at] + kept[at] + u[1]) <= rule.amount
  end

  -- admit takes a task that is not due yet, if all that it counts in have room.
  function charges.admit(i)
    local its = early and early[i]
    if its == nil then return true end -- nothing bounds it
    for k = 1, its and #its or 0 do
      if not roomy(its[k], its) then return false end
    end
    if not its then return false end
    for k = 1, #its do
      local at = its[k]
      enter(at, its.ref, its.kind)
      -- guard: plain-ahead-rate-starts
      if ruled[at].gap then empties[at] = counting.started(math.max(empties[at], its.due), ruled[at].gap) end
      if ruled[at].amount and not whose[at] then after[at] = after[at] + ONE end
      if whose[at] then keep(at, its.ref, usual(its.kind, ruled[at].unit)) end
    end
    if its.uses then
      uses[nuses + 1], uses[nuses + 2] = its.ref, its.uses
      nuses = nuses + 2
    end
    return true
  end

  -- fit says whether there is room for all that are to be taken, so that none has to wait and no budget is used up by them.
  function charges.fit()
    if n == 0 then return true end
    if redis.call('EXISTS', base .. 'lines') == 1 then
      for i, there in ipairs(redis.call('HMGET', base .. 'lines', unpack(names))) do
        if there and counts[i] > 0 then return false end
        closed[i] = there
      end
    end
    local flying = redis.call('HMGET', base .. 'flight', unpack(names))
    for i = 1, n do
      local now_ = tonumber(flying[i] or 0)
      runs[i] = now_
      local most = ruled[i].runs
      -- guard: plain-charge-runs
      if most and now_ + counts[i] > most and counts[i] > 0 then return false end
    end
    for i, text in ipairs(read(learning, 'HMGET', 'learned')) do
      local at, l = learning[i], counting.learned(text)
      if not l or l.probe ~= 0 or l.till > now or runs[at] + counts[at] > math.floor(l.allow) then
        if counts[at] > 0 then return false end
        closed[at] = true
      else
        learned[at], gaps[at] = math.floor(l.allow), l.gap > 0 and l.gap or ruled[at].gap
        if gaps[at] and counts[at] > 0 then rated[#rated + 1] = at end
      end
    end
    for i, empty in ipairs(read(rated, 'ZMSCORE', 'rates')) do
      if not in_time(rated[i], tonumber(empty) or 0) then return false end
    end
    local till = read(spending, 'ZMSCORE', 'periods')
    for i, amount in ipairs(read(spending, 'HMGET', 'spent')) do
      local at, end_ = spending[i], till[i] and tonumber(till[i])
      local r, add, before = ruled[at], whose[at] and 0 or counts[at] * ONE, 0
      ends[at] = end_ and end_ > now
      if ends[at] then before = amount and tonumber(amount) or 0 end
      -- guard: plain-charge-spent
      local over = (before >= r.amount or before + add >= r.amount) and not (r.notify and before >= r.amount) or before + add >= MOST_EXACT
      if over and counts[at] > 0 then return false end
      spent[at], after[at] = before, before + add
    end
    for i, text in ipairs(read(reserving, 'HMGET', 'reserved')) do
      if not reserve(reserving[i], text) then return false end
    end
    return true
  end

  -- forget drops buckets that are as new, as emptied does.
  local function forget(some, key, beside)
    local over = #some > 0 and redis.call('ZRANGEBYSCORE', base .. key, '-inf', string.format('%.0f', now), 'LIMIT', '0', tostring(math.max(EMPTIED, #some))) or {}
    if #over > 0 then redis.call('ZREM', base .. key, unpack(over)) end
    if #over > 0 and beside then redis.call('HDEL', base .. beside, unpack(over)) end
  end

  -- commit writes it.
  function charges.commit()
    if nuses == 0 then return end
    local nflight = 0
    local flight, rates, charged, periods, reserved, texts = {}, {}, {}, {}, {}, {}
    local function put(to, key, value) to[#to + 1], to[#to + 2] = key, value end
    forget(rated, 'rates')
    forget(spending, 'periods', 'spent')
    for i = 1, n do
      local after = runs[i] + counts[i]
      local text = texts[after] or string.format('%.0f', after) -- few are different ones
      texts[after] = text
      if counts[i] > 0 then
        flight[nflight + 1], flight[nflight + 2] = names[i], text
        nflight = nflight + 2
      end
    end
    for _, at in ipairs(rated) do
      if counts[at] > 0 then put(rates, string.format('%.3f', empties[at]), names[at]) end
    end
    for i = 1, #reserving do
      local at = reserving[i]
      if keeps[at] then put(reserved, names[at], keeps[at]) end
    end
    for i = 1, #spending do
      local at = spending[i]
      if not whose[at] and counts[at] > 0 then
        put(charged, names[at], string.format('%.0f', after[at]))
        if not ends[at] then put(periods, select(2, counting.period_end(ruled[at], now)), names[at]) end
      end
    end
    counting.put_all('flight', flight)
    counting.put_all('uses', uses)
    if #rates > 0 then redis.call('ZADD', base .. 'rates', unpack(rates)) end
    counting.put_all('spent', charged)
    if #periods > 0 then redis.call('ZADD', base .. 'periods', unpack(periods)) end
    counting.put_all('reserved', reserved)
    counting.put_all('reserves', reserves)
  end
  return charges
end
