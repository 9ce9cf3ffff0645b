-- plainreturn: limits and budgets of a plain settlement: what its runs had of them is given back together, where nobody waits for it and no budget
--        is used up by what they have used.
-- needs: counting

-- with_returns makes what follows only for a settlement that needs it: of the buckets of each run, its task and its kind, and of what runs say of
-- themselves, a line each: its place, how it was answered, what it has used. It returns what writes it; nil if something is out of the ordinary.
-- rule: limits
local function with_returns(refs, had, kind_of, said, counting, base, now)
  local adapts, byte, sub = redis.call('EXISTS', base .. 'learned') == 1, string.byte, string.sub
  -- Of each bucket its place, by its name; of each place the name, how many runs end, and how many there were. Of a budget, and of what may adapt, there is
  -- more to know.
  local places, names, counts, runs, more, n = {}, {}, {}, {}, {}, 0
  local budgets, ends_of, answers, used, charged = {}, {}, {}, {}, {}
  for at, answer, units in string.gmatch(said, '\n(%d+)|([^|\n]*)|([^\n]*)') do
    local i = tonumber(at)
    if had[i] and byte(answer) == byte('w') then return nil end -- it was told to come back later
    answers[i], used[i] = answer, counting.units(units)
  end
  local function note(name, i)
    local at = places[name]
    if not at then
      n = n + 1
      at = n
      places[name], names[n], counts[n] = n, name, 0
      local budget = string.find(name, '$', 1, true)
      if budget or adapts then more[n] = { name = name, at = n, budget = budget, of = {} } end
      if budget then budgets[#budgets + 1] = more[n] end
    end
    counts[at] = counts[at] + 1
    local b = more[at]
    if b then b.of[#b.of + 1] = i end
    if b and b.budget and ends_of[#ends_of] ~= i then ends_of[#ends_of + 1] = i end
  end
  for i = 1, #refs do
    local all = had[i]
    if all and (places[all] or not string.find(all, '\n', 1, true)) then
      note(all, i)
    else
      for name in string.gmatch(all or '', '[^\n]+') do note(name, i) end
    end
  end
  -- guard: plain-return-many
  if n > MOST_BUCKETS then return nil end
  local function names_of(some)
    local of = {}
    for i, b in ipairs(some) do of[i] = b.name end
    return unpack(of)
  end
  if redis.call('EXISTS', base .. 'granted') == 1 then return nil end
  if redis.call('EXISTS', base .. 'lines') == 1 then
    for _, there in ipairs(redis.call('HMGET', base .. 'lines', unpack(names))) do
      -- guard: plain-return-lines
      if there then return nil end
    end
  end
  for i, now_ in ipairs(redis.call('HMGET', base .. 'flight', unpack(names))) do runs[i] = now_ and tonumber(now_) or 0 end

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
      local b, l = more[i], known and counting.learned(known)
      local allowed = l and not b.budget and rule_of(b.name).text or ''
      if l and l.probe ~= 0 then return nil end
      if string.find(allowed, ADAPTS) then
        local empty
        local function busy()
          empty = empty or redis.call('ZSCORE', base .. 'rates', b.name) or ''
          return tonumber(empty)
        end
        for k, run in ipairs(b.of) do
          -- rule: learned
          if answers[run] ~= '-' then counting.learn(l, runs[i] - k + 1, tonumber(string.match(allowed, '^%d+')), nil, busy) end
        end
        learns[#learns + 1], learns[#learns + 2] = b.name, counting.text(l)
      end
    end
  end

  -- Budgets are charged what was used, but for what was charged before, and are given back what was kept.
  local usual, sums, refs_of, some_charged = {}, {}, {}, false
  if #budgets > 0 then
    for k, i in ipairs(ends_of) do refs_of[k] = refs[i] end
    some_charged = redis.call('EXISTS', base .. 'charged') == 1
    for k, before in ipairs(some_charged and redis.call('HMGET', base .. 'charged', unpack(refs_of)) or {}) do charged[ends_of[k]] = counting.units(before) end
    for i, amounts in ipairs(redis.call('HMGET', base .. 'reserved', names_of(budgets))) do
      if amounts then
        local reserved, untried = string.match(amounts, '^(%d+)|(%d+)$')
        budgets[i].reserved, budgets[i].untried = tonumber(reserved), tonumber(untried)
      end
    end
    for _, lines in ipairs(redis.call('HMGET', base .. 'reserves', unpack(refs_of))) do
      for amount, name in string.gmatch(lines or '', '([%d?]+) ([^\n]+)') do
        local b = more[places[name] or 0]
        if not b then return nil end
        if b.reserved then
          b.changed = true
          if amount == '?' then b.untried = math.max(b.untried - 1, 0) else b.reserved = math.max(b.reserved - amount, 0) end
        end
      end
    end
    local noted = {}
    for _, b in ipairs(budgets) do
      local its = rule_of(b.name)
      local unit, rule = its.unit, its.budget
      if not unit then return nil end
      noted[unit] = unit ~= UNIT_RUNS and (noted[unit] or {})
      local noting = noted[unit]
      for _, i in ipairs(b.of) do
        local amount, kind = used[i] and used[i][unit], kind_of(i)
        if noting and answers[i] ~= '-' and not noting[i] then
          noting[i] = true
          local name = kind .. '|' .. unit
          local of = usual[name] or {}
          usual[name], of[#of + 1] = of, amount or 0
        end
        if amount and rule then b.more = (b.more or 0) + math.max(amount - (charged[i] and charged[i][unit] or 0), 0) end
      end
      if b.more then sums[#sums + 1] = b end
      b.rule = rule
    end
  end
  local till = #sums > 0 and redis.call('ZMSCORE', base .. 'periods', names_of(sums))
  for i, amount in ipairs(till and redis.call('HMGET', base .. 'spent', names_of(sums)) or {}) do
    local b, ends, before = sums[i], tonumber(till[i]), 0
    if ends and ends > now then b.ends, before = ends, tonumber(amount) or 0 end
    b.after = before + b.more
    if before < b.rule.amount and b.after >= b.rule.amount or b.after >= MOST_EXACT then return nil end
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
    for _, b in ipairs(budgets) do
      if runs[b.at] <= counts[b.at] then
        unkept[#unkept + 1] = b.name
      elseif b.changed then
        put(kept, b.name, string.format('%.0f|%.0f', b.reserved, b.untried))
      end
      if b.after then
        put(spent, b.name, string.format('%.0f', b.after))
        if not b.ends then put(periods, string.format('%.0f', counting.period_end(b.rule, now)), b.name) end
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
    for name, amounts in pairs(usual) do
      redis.call('HSET', base .. 'usual', name, counting.used_by(redis.call('HGET', base .. 'usual', name), amounts))
    end
  end
end
