-- plainclaim: lease what is due where nothing is out of the ordinary: nothing of it is held or to be parked, there is room for all of it, agents with many tasks
--        have them at one level and none is large, and no lease has ended. It changes nothing where something is, but the lines of tenants, which are an index,
--        and the caller sends claim instead.
--        Straight on, without functions and loops that the common case does not need: most of what a claim costs is Lua.
-- needs: lanes counting plaincharge
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] state
-- KEYS[4] claims
-- KEYS[5] leases
-- KEYS[6] kinds
-- KEYS[7] counters
-- KEYS[8] due
-- KEYS[9] tasks
-- ARGV[1] nonce, 16 bytes, as for claim
-- ARGV[2] most tasks
-- ARGV[3] lease, ms, and for each kind that has another one a line: lease, ms, '|' kind
-- ARGV[4] the largest fence that the caller has seen, 0: none; behind it the stamp(24) of what it needs to be stored, if any
-- ARGV[5] number of kinds; behind a - to take tasks ahead of their time too
-- ARGV[6..] 1 for each kind with a handler: kind
-- ARGV[..] 1 for each agent to visit; none: any agent. Or 3 for tasks ahead of their time: due within ms, most of them, lease of a claim with some, ms
-- returns {now} if something is out of the ordinary, else {now, next due of these agents or '', next end of a lease or '', fence or '', behind a t if tenants took turns,
--          {agent of each task}, {due of each}, {live of each; in front of one that is stored inline there is still an S}, {state of
--          each, or none at all}, {when each agent to visit is due next or ''}, {agent, profile of each that has one} or
--          nothing if the partition has none}

local STAMPED = 24 -- longer than a fence alone
local MOST_HOLDS = 64 -- that are looked at one by one
local MOST_TASKS = 50 -- tasks of a claim
local FIRST_LOOK = 4 -- entries of the agenda
local LAST_LOOKED = '3' -- the last of them, as Redis counts
local FEW_ASKED = 5 -- tasks, for which the first look is one entry longer: it tells all that such a claim has to know
local ODD = { now }
local nkinds, within, most_ahead, lease_ahead = tonumber(ARGV[5]), nil, nil, nil
if nkinds < 0 then
  nkinds = -nkinds
  within, most_ahead, lease_ahead = unpack(ARGV, 6 + nkinds)
end

-- 1. What is rare: each is nothing to a claim whose tasks it is not about.
local held, held_kinds, held_keys, parked, ORDERS, BOUNDED, charges = nil, {}, nil, nil, nil, nil, nil
local rare, tenants = redis.call('EXISTS', base .. 'holds', base .. 'parked', base .. 'open', base .. 'orders', base .. 'limits', base .. 'bounds', base .. 'suspects', base .. 'tenants'), false
if rare > 0 then
  tenants = redis.call('EXISTS', base .. 'tenants') == 1
  rare = rare - (tenants and 1 or 0)
end
if rare > 0 then
  local rules, holds = redis.call('HLEN', base .. 'limits'), 0
  local others = rules == 0 or rare > 1 -- mostly there are limits, and nothing else
  if others then
    if redis.call('EXISTS', base .. 'open', base .. 'suspects') > 0 then return ODD end
    holds = redis.call('HLEN', base .. 'holds')
  end
  if holds > MOST_HOLDS or rules > MOST_HOLDS then return ODD end
  if rules > 0 then
    charges = with_charges(redis.call('HGETALL', base .. 'limits'), with_counting(base, now), base, now)
    if not charges then return ODD end
  end
  -- rule: holds
  if holds > 0 then held = {} end
  for _, scope in ipairs(holds > 0 and redis.call('HKEYS', base .. 'holds') or {}) do
    local letter = byte(scope)
    if letter == byte(SCOPE_KIND) then
      held_kinds[sub(scope, 3)] = true
    elseif letter == byte(SCOPE_KEY) then
      held_keys = held_keys or {}
      held_keys[sub(scope, 3)] = true
    elseif letter == byte(SCOPE_AGENT) or letter == byte(SCOPE_TASK) then
      held[sub(scope, 3)] = true
    else
      return ODD
    end
  end
  -- rule: parked
  for _, there in ipairs(others and redis.call('HMGET', base .. 'parked', unpack(ARGV, 6, 5 + nkinds)) or {}) do
    if there then return ODD end
  end
  if others then parked, ORDERS, BOUNDED = true, redis.call('EXISTS', base .. 'orders') == 1, redis.call('EXISTS', base .. 'bounds') == 1 end
end
local lease = redis.call('ZRANGE', KEYS[5], '0', '0', 'WITHSCORES')[2]
local lease_at = lease and tonumber(lease)
-- guard: plain-recovery
-- rule: expired-lease repeated-nonce
if lease and lease_at <= now or redis.call('HEXISTS', KEYS[4], CLAIM_NONCE .. ARGV[1]) == 1 then return ODD end

-- 2. What is due: tasks by themselves, in the order in which they have waited, and agents with many.
-- The first entries tell both what is due, where little is, and what is next.
local limit, asked, due, task, known, in_turn = tonumber(ARGV[2]), {}, {}, nil, false, nil
local early, until_, beyond = {}, within and now + tonumber(within) or 0, nil -- what is due next, until when that is looked at, and when the first behind it is
if within or #ARGV == 5 + nkinds then
  local at, look, last = 0, FIRST_LOOK, LAST_LOOKED
  if limit <= FEW_ASKED then look, last = limit + 1, ARGV[2] end
  -- rule: longest-waiting-first
  due = redis.call('ZRANGE', KEYS[1], '0', last, 'WITHSCORES')
  while due[at + 1] and tonumber(due[at + 2]) <= now do at = at + 2 end
  -- guard: plain-claim-few
  known = at < 2 * look or look > limit and not tenants
  if known then
    at = math.min(at, 2 * limit)
    task = due[at + 2]
    local all = #due
    for i = all, at + 1, -1 do
      if i % 2 == 0 then
        if tonumber(due[i]) <= until_ then early[i - at], early[i - at - 1] = due[i], due[i - 1] else beyond = due[i] end
      end
      due[i] = nil
    end
    if #early < all - at or all < 2 * look then until_ = 0 end -- there are no more
  else
    -- guard: plain-claim-tenants
    if tenants then -- they take turns if more is due
      if #ARGV[4] > STAMPED and not string.find(redis.call('HGET', KEYS[7], 'stamps') or '', sub(ARGV[4], -STAMPED), 1, true) then return ODD end -- it takes nothing
      in_turn = with_lanes().choose(limit, limit, limit)
    end
    if in_turn and #in_turn > 0 then
      if #in_turn < limit then return ODD end
      due = {}
      for i = 1, limit do due[2 * i - 1], due[2 * i] = in_turn[i], in_turn.since[i] end
    else
      due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'WITHSCORES', 'LIMIT', '0', ARGV[2])
    end
  end
else -- the tasks of some agents: the head of each says where they are
  local entries, order = {}, {}
  for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(ARGV, 6 + nkinds))) do
    local agent, form = ARGV[5 + nkinds + i], value and byte(value)
    asked[i] = ''
    if form == byte(QUEUED) then return ODD end
    if value then
      entries[#entries + 1] = agent
      order[#entries] = i
    end
    if form == byte(FEW) then
      local high, low = byte(value, 4, 5)
      local at = 6 + high * 256 + low
      while at < #value do
        high, low = byte(value, at + 7, at + 8)
        local last = at + 8 + high * 256 + low
        entries[#entries + 1] = agent .. ':' .. sub(value, at, at + 6) .. sub(value, at + 9, last)
        order[#entries] = i
        at = last + 1
      end
    end
  end
  local ready = {}
  for k, score in ipairs(#entries > 0 and redis.call('ZMSCORE', KEYS[1], unpack(entries)) or {}) do
    if score and tonumber(score) <= now then
      ready[#ready + 1] = { entries[k], tonumber(score), score, order[k] }
    elseif score and (asked[order[k]] == '' or tonumber(score) < tonumber(asked[order[k]])) then
      asked[order[k]] = score
    end
  end
  table.sort(ready, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
  for k, e in ipairs(ready) do
    if k <= limit then
      due[2 * k - 1], due[2 * k] = e[1], e[3]
    elseif asked[e[4]] == '' or e[2] < tonumber(asked[e[4]]) then
      asked[e[4]] = e[3]
    end
  end
end

-- Ahead of their time come the first of those that are due next, if all that are due have come.
local ndue = #due / 2
local room_ahead = within and ndue < limit and math.min(tonumber(most_ahead), MOST_TASKS - ndue) or 0
if room_ahead > 0 and until_ > now then
  beyond = nil
  early = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), string.format('%.0f', until_), 'WITHSCORES', 'LIMIT', '0', tostring(room_ahead))
end
for i = 1, math.min(#early, 2 * room_ahead) do due[2 * ndue + i] = early[i] end
local n, many, later = #due / 2, nil, {} -- later: places of those that are not taken ahead
local agents, dues, lives, refs, gone = {}, {}, {}, {}, {}
local names, at_names, tasks, at_tasks = {}, {}, {}, {}
local singles, slots = 0, 0
for i = 1, n do
  local member = due[2 * i - 1]
  local colon = string.find(member, ':', 1, true)
  gone[i], dues[i] = member, due[2 * i]
  if colon then
    slots = slots + 1
    tasks[slots], at_tasks[slots] = sub(member, 1, colon) .. sub(member, colon + 8), i
    agents[i] = sub(member, 1, colon - 1)
  else
    singles = singles + 1
    names[singles], at_names[singles] = member, i
    agents[i] = member
  end
end
if singles > 0 then
  for k, value in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
    local form = value and byte(value)
    if form == byte(INLINE) then
      lives[at_names[k]] = value
    elseif form == byte(FEW) then
      local high, low = byte(value, 4, 5)
      lives[at_names[k]] = sub(value, 6, 5 + high * 256 + low)
    elseif at_names[k] > ndue then
      later[at_names[k]] = true
    elseif form == byte(QUEUED) then
      local level = ({ ['1'] = '1', ['2'] = '2', ['4'] = '3' })[sub(value, 2, 2)]
      if not level then return ODD end -- tasks of several levels
      many = many or {}
      many[#many + 1] = { name = names[k], key = base .. 'queue:' .. level .. ':' .. names[k], got = 0, at = at_names[k] }
    else
      return ODD
    end
  end
end
if slots > 0 then
  for k, live in ipairs(redis.call('HMGET', KEYS[9], unpack(tasks))) do
    if not live and at_tasks[k] <= ndue then return ODD end
    -- guard: plain-claim-second
    lives[at_tasks[k]], refs[at_tasks[k]], later[at_tasks[k]] = live, tasks[k], not live or nil
  end
end
local own, lease_usual = nil, tonumber(ARGV[3])
if not lease_usual then -- kinds have leases of their own
  own, lease_usual = {}, tonumber(string.match(ARGV[3], '^%d+'))
  for ms, kind in string.gmatch(ARGV[3], '\n(%d+)|([^\n]*)') do own[kind] = tonumber(ms) end
end
if n > ndue then -- nothing is taken ahead that is out of the ordinary, or that an order, a signal or an activity may still change
  local ahead, takes = {}, {}
  for i = 6, 5 + nkinds do takes[ARGV[i]] = true end
  for i = ndue + 1, n do
    local live = lives[i] or ''
    local at = byte(live) == byte(INLINE) and 1 or 0
    local high, low = byte(live, at + 9, at + 10)
    local last = at + (high or 0) * 256 + (low or 0) + 10
    local kind = sub(live, last + 2, last + 1 + (byte(live, last + 1) or 0))
    refs[i] = refs[i] or agents[i] .. ':' .. sub(live, at + 11, last)
    local odd = many or not low or sub(live, at + 8, at + 8) == '1' or not takes[kind]
    odd = odd or held and (held[agents[i]] or held[refs[i]] or held_kinds[kind])
    if held_keys and not odd then
      last = last + 1 + #kind
      high, low = byte(live, last + 1, last + 2)
      odd = not low or held_keys[sub(live, last + 3, last + 2 + high * 256 + low)]
    end
    ahead[i - ndue] = refs[i]
    if odd then later[i] = true end
  end
  if redis.call('EXISTS', base .. 'orders', base .. 'pulse', base .. 'awaits') > 0 then
    for _, of in ipairs({ 'orders', 'pulse', 'awaits' }) do
      for k, there in ipairs(redis.call('HMGET', base .. of, unpack(ahead))) do
        if there then later[ndue + k] = true end
      end
    end
  end
end
if many or next(later) then -- the others close ranks
  if many and redis.call('EXISTS', base .. 'bytes') == 1 then return ODD end
  for _, agent in ipairs(many or {}) do later[agent.at] = true end
  local all, left = n, {}
  n = 0
  for i = 1, all do
    if not later[i] then
      n = n + 1
      agents[n], dues[n], lives[n], left[n], refs[n] = agents[i], dues[i], lives[i], gone[i], refs[i]
    end
  end
  gone = left
  for i = n + 1, all do agents[i], dues[i], lives[i], refs[i] = nil, nil, nil, nil end
end

-- 3. Agents with many give an equal share each, round by round, while there is room.
local visiting, room = many, limit - n
while visiting and room > 0 and #visiting > 0 do
  -- rule: equal-shares
  local share, again, wanted, chosen = math.max(1, math.floor(room / #visiting)), {}, 0, {}
  for _, agent in ipairs(visiting) do
    local want = math.min(share, room - wanted)
    local entries = want > 0 and redis.call('ZRANGE', agent.key, tostring(agent.got), tostring(agent.got + want), 'WITHSCORES') or {}
    local k = 0
    while k < want and entries[2 * k + 2] and tonumber(entries[2 * k + 2]) <= now do
      k = k + 1
      n = n + 1
      agents[n], dues[n] = agent.name, entries[2 * k]
      chosen[#chosen + 1] = agent.name .. ':' .. sub(entries[2 * k - 1], 8)
      agent[agent.got + k] = entries[2 * k - 1]
    end
    if want > 0 then agent.got, agent.next, wanted = agent.got + k, entries[2 * k + 2], wanted + k end
    if want > 0 and k == want then again[#again + 1] = agent end
  end
  if #chosen == 0 then break end
  for k, live in ipairs(redis.call('HMGET', KEYS[9], unpack(chosen))) do
    if not live then return ODD end
    lives[n - #chosen + k], refs[n - #chosen + k] = live, chosen[k]
  end
  visiting, room = again, room - #chosen
end

-- rule: tenants
if many and n >= limit and (within or #ARGV == 5 + nkinds) and tenants then return ODD end -- so do their agents

-- 4. Whether all of it is to be had.
local fence, states, packed, per = '', {}, {}, {}
local first_early, kinds_of, lease_taken = many and math.huge or ndue + 1, n > ndue and {} or nil, nil -- the first that is not due yet, and kinds of those
local bounds = n > 0 and BOUNDED and redis.call('HMGET', base .. 'bounds', unpack(agents)) -- limits and budgets that their agents have set for themselves
if bounds then
  for _, text in ipairs(bounds) do
    if text and not charges then charges = with_charges({}, with_counting(base, now), base, now) end
  end
end
for i = 6, 5 + nkinds do per[ARGV[i]] = 0 end
for i = 1, n do
  local agent, live = agents[i], lives[i]
  local at = byte(live) == byte(INLINE) and 1 or 0 -- no sequence number begins so before the year 2693
  local high, low = byte(live, at + 9, at + 10)
  if not low then return ODD end
  local last = at + high * 256 + low + 10
  local id = sub(live, at + 11, last)
  local kind = sub(live, last + 2, last + 1 + (byte(live, last + 1) or 0))
  local ref = refs[i] or agent .. ':' .. id
  -- guard: plain-claim-kinds
  -- rule: kinds
  if not per[kind] or held and (held[agent] or held[ref] or held_kinds[kind]) then return ODD end
  local own_ = bounds and bounds[i]
  local limited = own_ or charges and charges.some(kind)
  if held_keys or limited then
    last = last + 1 + #kind
    high, low = byte(live, last + 1, last + 2)
    local key = low and sub(live, last + 3, last + 2 + high * 256 + low)
    if not key or held_keys and held_keys[key] then return ODD end
    -- guard: plain-charge
    -- rule: limits
    if limited and i >= first_early then
      charges.wait(i, agent, ref, kind, key, own_, tonumber(dues[i]))
    elseif limited and not charges.count(agent, ref, kind, key, own_) then
      return ODD
    end
  end
  if i >= first_early then kinds_of[i] = kind elseif own then lease_taken = own[kind] or lease_usual end
  per[kind] = per[kind] + 1
  refs[i] = ref
  packed[3 * i - 2], packed[3 * i - 1], packed[3 * i] = agent, id, dues[i]
end
if charges and not charges.fit() then return ODD end
if n >= first_early and (own or charges) then -- not all may come: the first that is taken tells which lease the others have
  local k = ndue
  for i = first_early, n do
    local kind = kinds_of[i]
    local for_ = own and own[kind] or lease_usual
    if lease_taken and for_ ~= lease_taken or charges and not charges.admit(i) then
      per[kind] = per[kind] - 1
    else
      k = k + 1
      agents[k], dues[k], lives[k], gone[k], refs[k] = agents[i], dues[i], lives[i], gone[i], refs[i]
      packed[3 * k - 2], packed[3 * k - 1], packed[3 * k] = packed[3 * i - 2], packed[3 * i - 1], packed[3 * i]
      if own then lease_taken = lease_taken or for_ end
    end
  end
  for i = k + 1, n do
    agents[i], dues[i], lives[i], gone[i], refs[i] = nil, nil, nil, nil, nil
    packed[3 * i - 2], packed[3 * i - 1], packed[3 * i] = nil, nil, nil
  end
  n = k
end
local lease_of_all = lease_usual
-- rule: leases-of-kinds
if own and n > 0 then -- what is taken has one lease
  lease_of_all = nil
  for kind, k in pairs(per) do
    local for_ = k > 0 and (own[kind] or lease_usual)
    if for_ and lease_of_all and for_ ~= lease_of_all then return ODD end
    lease_of_all = for_ or lease_of_all
  end
end
-- guard: odd-unchanged
-- rule: orders
if n > 0 and ORDERS then
  for _, order in ipairs(redis.call('HMGET', base .. 'orders', unpack(refs))) do
    -- guard: plain-orders
    if order then return ODD end
  end
end

local counters, seen = n > 0 and redis.call('HMGET', KEYS[7], 'clock', 'running', 'stamps', 'ahead'), ARGV[4]
if n > 0 and #seen > STAMPED then
  -- guard: stamp-plain
  -- rule: stamp
  if not string.find(counters[3] or '', sub(seen, -STAMPED), 1, true) then return ODD end
  seen = sub(seen, 1, -STAMPED - 1)
end

-- 5. It leaves the agenda, and is leased. The first write is one that is allowed when memory is full. An agent that has nothing, as what
-- was due of it has been cancelled or put off, gets its right place.
-- guard: plain-claim-out-of-memory
if many then
  local moved, at_once = {}, string.format('%.0f', now)
  -- rule: first-write
  redis.call('ZREM', KEYS[1], '')
  for _, agent in ipairs(many) do
    if agent.got > 0 then redis.call('ZREM', agent.key, unpack(agent)) end
    -- rule: next-of-agent
    if agent.next then
      moved[#moved + 1] = tonumber(agent.next) > now and agent.next or at_once
      moved[#moved + 1] = agent.name
    else
      gone[#gone + 1] = agent.name
    end
  end
  if #moved > 0 then redis.call('ZADD', KEYS[1], unpack(moved)) end
end
if in_turn then in_turn.commit(in_turn, #in_turn > 0) end
-- guard: plain-claim-leaves
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)) end
if n > 0 then
  -- rule: fence-grows
  fence = string.format('%.0f', math.max((tonumber(counters[1]) or 0) + 1, now * 1024, seen + 1))
  local running = string.format('%.0f', (tonumber(counters[2]) or 0) + n)
  if not many and n > ndue then
    redis.call('HSET', KEYS[7], 'clock', fence, 'running', running, 'ahead', string.format('%.0f', math.max(tonumber(dues[n]), tonumber(counters[4]) or 0)))
    lease_of_all = math.min(lease_of_all, tonumber(lease_ahead))
  else
    redis.call('HSET', KEYS[7], 'clock', fence, 'running', running)
  end
  redis.call(
    -- guard: plain-claim-leases
    'HSET', KEYS[4], fence, string.rep(RUNNING, n) .. ARGV[1], fence .. CLAIM_REFS, cmsgpack.pack(packed), CLAIM_NONCE .. ARGV[1], fence
  )
  if charges then charges.commit() end
  local till = string.format('%.0f', now + lease_of_all)
  redis.call('ZADD', KEYS[5], till, fence)
  if not lease or lease_at > now + lease_of_all then lease, lease_at = till, now + lease_of_all end
  for kind, k in pairs(per) do
    if k > 0 then redis.call('HINCRBY', KEYS[6], COUNT_RUNNING .. kind, k == 1 and '1' or tostring(k)) end
  end
  if n < 8 or redis.call('EXISTS', KEYS[3]) == 1 then states = redis.call('HMGET', KEYS[3], unpack(refs)) end
end

-- 6. What their agents have set for themselves.
local there = n > 0 and redis.call('EXISTS', base .. 'profiles', base .. 'profiles', base .. 'watched') or 0
-- rule: profiles
local profiles = there > 1 and {}
if profiles then
  for i, profile in ipairs(redis.call('HMGET', base .. 'profiles', unpack(agents))) do
    if profile then profiles[#profiles + 1], profiles[#profiles + 2] = agents[i], profile end
  end
end

-- 7. When the partition is due next; what is parked in it stays so.
-- guard: plain-claim-beyond
if n > ndue and beyond and n - ndue == #early / 2 then -- all that was looked at has come
  task = beyond
elseif many or not known or n > ndue then
  task = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
end
-- rule: next-due
local hint = task
-- guard: plain-claim-hint
if lease and (not task or lease_at < tonumber(task)) then hint = lease end
local stands = (parked or n == 0) and redis.call('GET', KEYS[8])
if parked then hint = (hint or '') .. string.match(stands or '', '^%d*(.*)$') end
if hint and hint ~= '' then
  -- guard: plain-claim-vain
  if hint ~= stands then redis.call('SET', KEYS[8], hint) end -- a claim that finds nothing writes nothing: replicas and the file need not know of it
elseif n > 0 or stands then
  redis.call('DEL', KEYS[8])
end
if #asked > 0 then
  task = nil
  for _, next_ in ipairs(asked) do
    if next_ ~= '' and (not task or tonumber(next_) < tonumber(task)) then task = next_ end
  end
end
return { there % 2 == 1 and -now or now, task or '', lease or '', in_turn and TURNS .. fence or fence, agents, dues, lives, states, asked, profiles }
