-- plainreturn: limits and budgets of a plain settlement: what its runs had of them is given back together, where nobody waits for it and no budget
--        is used up by what they have used.
-- needs: counting

-- with_returns makes what follows only for a settlement that needs it: of the buckets of each run, its task and its kind, and of what runs say of
-- themselves, a line each: its place, how it was answered, what it has used. It returns what writes it; nil if something is out of the ordinary.
-- rule: limits
local function with_returns(refs, had, kind_of, said, counting, base, now)
  local rare = redis.call('EXISTS', base .. 'learned', base .. 'granted', base .. 'lines', base .. 'charged') > 0
  local adapts, byte, sub = rare and redis.call('EXISTS', base .. 'learned') == 1, string.byte, string.sub
  local find = string.find
  -- Of each bucket its place, by its name; of each place the name, how many runs end, and how many there were. Of a budget, and of what may adapt, there is
  -- more to know, in lists by their places, too: which runs they are, of a budget its rule, what is reserved and what was used.
  local places, names, counts, runs, n = {}, {}, {}, {}, 0
  local of, budgets, ends_of, answers, used, charged = {}, {}, {}, {}, {}, {}
  local rules, reserved, untried, changed, more, ends, after = {}, {}, {}, {}, {}, {}, {}
  local from = find(said, '\n', 1, true)
  while from do
    local bar = find(said, '|', from, true)
    local second, to = find(said, '|', bar + 1, true), find(said, '\n', bar + 1, true)
    local i, answer = tonumber(sub(said, from + 1, bar - 1)), sub(said, bar + 1, second - 1)
    if had[i] and byte(answer) == byte('w') then return nil end -- it was told to come back later
    answers[i], used[i] = answer, counting.units(sub(said, second + 1, to and to - 1 or -1))
    from = to
  end
  local function note(name, i)
    local at = places[name]
    if not at then
      n = n + 1
      at = n
      local budget = find(name, '$', 1, true)
      places[name], names[n], counts[n] = n, name, 1
      if budget or adapts then of[n] = { i } end
      if budget then budgets[#budgets + 1], rules[n] = n, true end
    else
      counts[at] = counts[at] + 1
      local some = of[at]
      if some then some[#some + 1] = i end
    end
    if rules[at] and ends_of[#ends_of] ~= i then ends_of[#ends_of + 1] = i end
  end
  for i = 1, #refs do
    local all = had[i]
    if all and (places[all] or not find(all, '\n', 1, true)) then
      note(all, i)
    else
      for name in string.gmatch(all or '', '[^\n]+') do note(name, i) end
    end
  end
  -- guard: plain-return-many
  if n > MOST_BUCKETS then return nil end
  local function names_of(some)
    if #some == n then return unpack(names) end
    local list = {}
    for i, at in ipairs(some) do list[i] = names[at] end
    return unpack(list)
  end
  if rare and redis.call('EXISTS', base .. 'granted') == 1 then return nil end
  if rare and redis.call('EXISTS', base .. 'lines') == 1 then
    for _, there in ipairs(redis.call('HMGET', base .. 'lines', unpack(names))) do
      -- guard: plain-return-lines
      if there then return nil end
    end
  end
  local flying = redis.call('HMGET', base .. 'flight', unpack(names))
  for i = 1, n do runs[i] = tonumber(flying[i] or 0) end

  -- rule_of is what is known of the rule of a bucket: its text, '' if it was lifted, and of a budget its unit. Mostly it is the same as that of the last.
  local known, last = {}, nil
  local function rule_of(name)
    if last and sub(name, 1, #last.mark) == last.mark then return last end
    local id, of = counting.split(name)
    last = known[id]
    if last then return last end
    local r = { id = id, mark = id .. '|', unit = string.match(id, '%$([%w_]+)%$%a$'), text = '' }
    if string.match(id, OWN) then -- it is that of an agent
      local own = counting.listed(redis.call('HGET', base .. 'bounds', of))
      for i = 1, #own, 2 do
        if own[i] == id then r.text = own[i + 1] end
      end
    else
      r.text = redis.call('HGET', base .. 'limits', id) or ''
      known[id], last = r, r
    end
    r.budget = r.unit and counting.budget(id, r.text)
    return r
  end

  -- Limits that adapt learn from each run in turn.
  local learns = {}
  if adapts then
    for i, known in ipairs(redis.call('HMGET', base .. 'learned', unpack(names))) do
      local l = known and counting.learned(known)
      local allowed = l and not rules[i] and rule_of(names[i]).text or ''
      if l and l.probe ~= 0 then return nil end
      if find(allowed, ADAPTS) then
        local empty
        local function busy()
          empty = empty or redis.call('ZSCORE', base .. 'rates', names[i]) or ''
          return tonumber(empty)
        end
        for k, run in ipairs(of[i]) do
          -- rule: learned
          if answers[run] ~= '-' then counting.learn(l, runs[i] - k + 1, tonumber(string.match(allowed, '^%d+')), nil, busy) end
        end
        learns[#learns + 1], learns[#learns + 2] = names[i], counting.text(l)
      end
    end
  end

  -- Budgets are charged what was used, but for what was charged before, and are given back what was kept.
  local usual, sums, refs_of, some_charged = {}, {}, {}, false
  if #budgets > 0 then
    for k, i in ipairs(ends_of) do refs_of[k] = refs[i] end
    some_charged = rare and redis.call('EXISTS', base .. 'charged') == 1
    for k, before in ipairs(some_charged and redis.call('HMGET', base .. 'charged', unpack(refs_of)) or {}) do charged[ends_of[k]] = counting.units(before) end
    for i, amounts in ipairs(redis.call('HMGET', base .. 'reserved', names_of(budgets))) do
      local bar = amounts and find(amounts, '|', 1, true)
      if bar then reserved[budgets[i]], untried[budgets[i]] = tonumber(sub(amounts, 1, bar - 1)), tonumber(sub(amounts, bar + 1)) end
    end
    -- unkept takes what was reserved for a run out of what is for its bucket. It returns whether the run counts there.
    local function unkept(amount, name)
      local at = places[name]
      if not at or not rules[at] then return false end
      if reserved[at] then
        changed[at] = true
        if amount == '?' then untried[at] = math.max(untried[at] - 1, 0) else reserved[at] = math.max(reserved[at] - amount, 0) end
      end
      return true
    end
    for _, lines in ipairs(redis.call('HMGET', base .. 'reserves', unpack(refs_of))) do
      local space = lines and find(lines, ' ', 1, true)
      if space and not find(lines, '\n', space, true) then
        if not unkept(sub(lines, 1, space - 1), sub(lines, space + 1)) then return nil end
      else
        for amount, name in string.gmatch(lines or '', '([%d?]+) ([^\n]+)') do
          if not unkept(amount, name) then return nil end
        end
      end
    end
    local noted = {}
    for k = 1, #budgets do
      local at = budgets[k]
      local its, runs_of = rule_of(names[at]), of[at]
      local unit, rule = its.unit, its.budget
      if not unit then return nil end
      noted[unit], usual[unit] = unit ~= UNIT_RUNS and (noted[unit] or {}), usual[unit] or {}
      local noting, by_kind = noted[unit], usual[unit]
      for j = 1, #runs_of do
        local i = runs_of[j]
        local amount = used[i] and used[i][unit]
        if noting and answers[i] ~= '-' and not noting[i] then
          noting[i] = true
          local kind = kind_of(i)
          local amounts = by_kind[kind] or {}
          by_kind[kind], amounts[#amounts + 1] = amounts, amount or 0
        end
        if amount and rule then more[at] = (more[at] or 0) + math.max(amount - (charged[i] and charged[i][unit] or 0), 0) end
      end
      if more[at] then sums[#sums + 1] = at end
      rules[at] = rule or true
    end
  end
  local till = #sums > 0 and redis.call('ZMSCORE', base .. 'periods', names_of(sums))
  for i, amount in ipairs(till and redis.call('HMGET', base .. 'spent', names_of(sums)) or {}) do
    local at, end_, before = sums[i], till[i] and tonumber(till[i]), 0
    ends[at] = end_ and end_ > now
    if ends[at] then before = amount and tonumber(amount) or 0 end
    after[at] = before + more[at]
    if before < rules[at].amount and after[at] >= rules[at].amount or after[at] >= MOST_EXACT then return nil end
  end

  -- It is written once the settlement is known to be plain.
  return function()
    local flight, gone, kept, unkept, spent, periods, uses = {}, {}, {}, {}, {}, {}, {}
    local function put(to, key, value) to[#to + 1], to[#to + 2] = key, value end
    local numbers = {} -- few are different ones
    for i = 1, n do
      local left = runs[i] - counts[i]
      if left > 0 then
        numbers[left] = numbers[left] or string.format('%.0f', left)
        put(flight, names[i], numbers[left])
      else
        gone[#gone + 1] = names[i]
      end
    end
    for k = 1, #budgets do
      local at = budgets[k]
      if runs[at] <= counts[at] then
        unkept[#unkept + 1] = names[at]
      elseif changed[at] then
        put(kept, names[at], string.format('%.0f|%.0f', reserved[at], untried[at]))
      end
      if after[at] then
        put(spent, names[at], string.format('%.0f', after[at]))
        if not ends[at] then put(periods, select(2, counting.period_end(rules[at], now)), names[at]) end
      end
    end
    for i = 1, #refs do
      if had[i] then uses[#uses + 1] = refs[i] end
    end
    redis.call('HDEL', base .. 'uses', unpack(uses))
    if #flight > 0 then redis.call('HSET', base .. 'flight', unpack(flight)) end
    if #gone > 0 then redis.call('HDEL', base .. 'flight', unpack(gone)) end
    if #kept > 0 then redis.call('HSET', base .. 'reserved', unpack(kept)) end
    if #unkept > 0 then redis.call('HDEL', base .. 'reserved', unpack(unkept)) end
    if #refs_of > 0 then redis.call('HDEL', base .. 'reserves', unpack(refs_of)) end
    if some_charged then redis.call('HDEL', base .. 'charged', unpack(refs_of)) end
    counting.put_all('spent', spent)
    if #periods > 0 then redis.call('ZADD', base .. 'periods', unpack(periods)) end
    if #learns > 0 then redis.call('HSET', base .. 'learned', unpack(learns)) end
    -- rule: usual
    for unit, by_kind in pairs(usual) do
      for kind, amounts in pairs(by_kind) do
        local name = kind .. '|' .. unit
        redis.call('HSET', base .. 'usual', name, counting.used_by(redis.call('HGET', base .. 'usual', name), amounts))
      end
    end
  end
end
