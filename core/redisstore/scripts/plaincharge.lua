-- plaincharge: limits and budgets of a plain claim: its tasks are counted together, where there is room for all of them and nobody waits for any.
-- needs: counting

local MOST_EXACT = 9000000000000000 -- below which sums of amounts are exact

-- with_charges makes what follows only for a claim that needs it: of the limits and budgets of all agents, nil if some are counted elsewhere too.
-- rule: limits
local function with_charges(all, counting, base, now)
  local charges, by_kind, of_sort, of_agent = {}, {}, {}, {}
  -- Of each bucket its place, by its name; of each place the name, the rule, how many are to be taken, and how many run. What else there is to know of one
  -- is in `more`, and in a list of those of its sort: each table costs as much as a command for a few fields.
  local places, names, ruled, counts, runs, more, n = {}, {}, {}, {}, {}, {}, 0
  local rated, learning, spending, reserving, kept = {}, {}, {}, {}, {}
  local uses, nuses, none = {}, 0, {}
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
    if rule.gap or rule.adapts or rule.amount then
      local b = { name = name, rule = rule, at = n, of = rule.unit and rule.unit ~= UNIT_RUNS and {} }
      more[n] = b
      if rule.adapts then learning[#learning + 1] = b elseif rule.gap then rated[#rated + 1] = b end
      if rule.amount then spending[#spending + 1] = b end
      if b.of then reserving[#reserving + 1] = b end
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
    local b = more[at]
    if b and b.of then b.of[#b.of + 1], b.of[#b.of + 2] = ref, kind end
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
    local of = {}
    for i, b in ipairs(some) do of[i] = b.name end
    return #of > 0 and redis.call(command, base .. key, unpack(of)) or none
  end

  -- Of a rate each start has to be in time by itself, as if they came one after the other.
  local function in_time(b, empty)
    local leeway, gap = b.learned and LATE or b.rule.leeway, b.gap or b.rule.gap
    for _ = 1, counts[b.at] do
      if empty - leeway > now then return false end
      empty = counting.started(empty, gap)
    end
    b.empty = empty
    return true
  end

  local known = {}
  local function usual(kind, unit)
    local name = kind .. '|' .. unit
    if known[name] == nil then known[name] = counting.usual(redis.call('HGET', base .. 'usual', name)) or false end
    return known[name]
  end

  -- reserve keeps what the tasks of a bucket usually use, if there is room for each beside those under way: see own.tight and own.reserve.
  local function reserve(b, all_)
    b.reserved, b.untried = 0, 0
    if runs[b.at] > 0 and all_ then
      local reserved, untried = string.match(all_, '^(%d+)|(%d+)$')
      b.reserved, b.untried = tonumber(reserved) or 0, tonumber(untried) or 0
    end
    for k = 1, #b.of, 2 do
      local u, ref = usual(b.of[k + 1], b.rule.unit), b.of[k]
      if not u or not b.rule.notify and b.reserved + b.untried > 0 and b.spent + b.reserved + u[1] > b.rule.amount then return false end
      if u[2] > 0 then
        u.text = u.text or string.format('%.0f', u[2])
        b.keeps = b.reserved + b.untried == 0 and u.text .. '|0' or true -- what is to be kept, if it is that of one run
        b.reserved = b.reserved + u[2]
        kept[ref] = (kept[ref] and kept[ref] .. '\n' or '') .. u.text .. ' ' .. b.name
      end
    end
    return b.spent + b.reserved < MOST_EXACT
  end

  -- fit says whether there is room for all that are to be taken, so that none has to wait and no budget is used up by them.
  function charges.fit()
    if nuses == 0 then return true end
    if redis.call('EXISTS', base .. 'lines') == 1 then
      for _, there in ipairs(redis.call('HMGET', base .. 'lines', unpack(names))) do
        if there then return false end
      end
    end
    for i, now_ in ipairs(redis.call('HMGET', base .. 'flight', unpack(names))) do
      now_ = now_ and tonumber(now_) or 0
      runs[i] = now_
      local most = ruled[i].runs
      -- guard: plain-charge-runs
      if most and now_ + counts[i] > most then return false end
    end
    for i, text in ipairs(read(learning, 'HMGET', 'learned')) do
      local b, l = learning[i], counting.learned(text)
      if not l or l.probe ~= 0 or l.till > now or runs[b.at] + counts[b.at] > math.floor(l.allow) then return false end
      b.learned, b.gap = l, l.gap > 0 and l.gap or b.rule.gap
      if b.gap then rated[#rated + 1] = b end
    end
    for i, empty in ipairs(read(rated, 'ZMSCORE', 'rates')) do
      if not in_time(rated[i], tonumber(empty) or 0) then return false end
    end
    local ends = read(spending, 'ZMSCORE', 'periods')
    for i, amount in ipairs(read(spending, 'HMGET', 'spent')) do
      local b, till = spending[i], tonumber(ends[i])
      local r, add = b.rule, b.of and 0 or counts[b.at] * ONE
      if till and till > now then b.ends, b.spent = till, tonumber(amount) or 0 else b.spent = 0 end
      -- guard: plain-charge-spent
      if (b.spent >= r.amount or b.spent + add >= r.amount) and not (r.notify and b.spent >= r.amount) or b.spent + add >= MOST_EXACT then return false end
      b.after = b.spent + add
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
    local flight, rates, spent, periods, reserved, reserves, texts = {}, {}, {}, {}, {}, {}, {}
    local function put(to, key, value) to[#to + 1], to[#to + 2] = key, value end
    forget(rated, 'rates')
    forget(spending, 'periods', 'spent')
    for i = 1, n do
      local after = runs[i] + counts[i]
      local text = texts[after] or string.format('%.0f', after) -- few are different ones
      texts[after] = text
      flight[2 * i - 1], flight[2 * i] = names[i], text
    end
    for _, b in ipairs(rated) do put(rates, string.format('%.3f', b.empty), b.name) end
    for _, b in ipairs(reserving) do
      if b.keeps then put(reserved, b.name, b.keeps ~= true and b.keeps or string.format('%.0f|%.0f', b.reserved, b.untried)) end
    end
    for _, b in ipairs(spending) do
      if not b.of then
        put(spent, b.name, string.format('%.0f', b.after))
        if not b.ends then put(periods, string.format('%.0f', counting.period_end(b.rule, now)), b.name) end
      end
    end
    for ref, text in pairs(kept) do put(reserves, ref, text) end
    counting.put_all('flight', flight)
    counting.put_all('uses', uses)
    if #rates > 0 then redis.call('ZADD', base .. 'rates', unpack(rates)) end
    counting.put_all('spent', spent)
    if #periods > 0 then redis.call('ZADD', base .. 'periods', unpack(periods)) end
    counting.put_all('reserved', reserved)
    counting.put_all('reserves', reserves)
  end
  return charges
end
