-- lanes: whose turn it is among tenants, while more is due than one claim may take. The agenda stays what is true: lanes are an index of what
-- in it is due, made by the claims that need one, so that no other call pays for tenants. What is missing in a lane is found by age.
-- needs: layout alone

local MOST_SORTED = 3400 -- members of the agenda that one claim puts into lanes, at most about: three claims put 10,000
local MOST_STALE = 1000 -- entries of lanes that one claim drops, as they are there no more, at most
local FIRST_PAGE = 8 -- of the agenda, which may not be due yet
local NEXT_PAGE = 850 -- a whole one of what is
local BY_AGE = 32 -- each so-manyth claim goes by age alone: what lanes do not have must not wait for ever

-- with_lanes makes what follows only for a claim that needs it.
local function with_lanes()
  local lanes, find_ = { stale = 0 }, string.find

  -- put puts members of the agenda into the lanes of their tenants. Each comes with since when it has waited behind it: before now.
  function lanes.put(entries, n)
    local by_name, sizes = {}, {}
    for from = 0, n - 1, 2000 do
      local agents, k = {}, 0
      for i = from + 1, math.min(from + 2000, n), 2 do
        local member = entries[i]
        local colon = find_(member, ':', 1, true)
        k = k + 1
        agents[k] = colon and sub(member, 1, colon - 1) or member
      end
      for i, tenant in ipairs(redis.call('HMGET', base .. 'tenants', unpack(agents))) do
        local name, at = tenant or '', from + 2 * i
        local lane, size = by_name[name], sizes[name] or 0
        if not lane then
          lane = {}
          by_name[name] = lane
        end
        lane[size + 1], lane[size + 2], sizes[name] = entries[at], entries[at - 1], size + 2
      end
    end
    for name, lane in pairs(by_name) do
      for i = 1, #lane, 2000 do redis.call('ZADD', base .. 'lane:' .. name, unpack(lane, i, math.min(i + 1999, #lane))) end
      redis.call('ZADD', base .. 'lanes', redis.call('HGET', base .. 'visits', VISIT_OF .. name) or 0, name)
    end
  end

  -- clear forgets all lanes, and whose turn it was.
  function lanes.clear()
    for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do redis.call('UNLINK', base .. 'lane:' .. name) end
    redis.call('UNLINK', base .. 'lanes', base .. 'visits', base .. 'laned')
  end

  -- reached is how many members of the agenda come no later than the last one that was put into a lane, which need not be there any more. None
  -- is left of what was if it is 0.
  function lanes.reached()
    local score, member = string.match(redis.call('HGET', base .. 'laned', LANED_TO) or '', '^(%S+) (.*)$')
    if not score then return 0 end
    local behind = member .. '\0'
    redis.call('ZADD', base .. 'agenda', score, behind)
    local n = redis.call('ZRANK', base .. 'agenda', behind)
    redis.call('ZREM', base .. 'agenda', behind)
    return n
  end

  -- catch_up puts into lanes what is due since the last claim that did, and what was placed behind its back.
  function lanes.catch_up()
    local at = lanes.reached()
    if at == 0 then lanes.clear() end
    local late, entries = redis.call('HKEYS', base .. 'laned'), {}
    for from = 1, #late, 1000 do
      local some = { unpack(late, from, math.min(from + 999, #late)) }
      for i, score in ipairs(redis.call('ZMSCORE', base .. 'agenda', unpack(some))) do
        if score and tonumber(score) < now then entries[#entries + 1], entries[#entries + 2] = some[i], score end
        if some[i] ~= LANED_TO then redis.call('HDEL', base .. 'laned', some[i]) end
      end
    end
    lanes.put(entries, #entries)
    local size, sorted, all = FIRST_PAGE, 0, false
    repeat
      local page = redis.call('ZRANGE', base .. 'agenda', at, at + size - 1, 'WITHSCORES')
      local last = #page
      all = last < 2 * size
      while last > 0 and tonumber(page[last]) >= now do last, all = last - 2, true end
      lanes.put(page, last)
      -- guard: lanes-laned
      if last > 0 then redis.call('HSET', base .. 'laned', LANED_TO, page[last] .. ' ' .. page[last - 1]) end
      at, sorted, size = at + size, sorted + last / 2, NEXT_PAGE
    until all or sorted >= MOST_SORTED
  end

  -- fill reads so many members of a lane, in all; those that are not in the agenda as it says are dropped.
  function lanes.fill(lane, n)
    local key, have = base .. 'lane:' .. lane.name, #lane
    while have < n and lane.more do
      local page = redis.call('ZRANGE', key, have, n - 1, 'WITHSCORES')
      local members, k, stale = {}, 0, {}
      for i = 1, #page, 2 do
        k = k + 1
        members[k] = page[i]
      end
      lane.more = k > 0
      for i, score in ipairs(k > 0 and redis.call('ZMSCORE', base .. 'agenda', unpack(members)) or {}) do
        -- guard: lanes-stale
        if score == page[2 * i] then
          have = have + 1
          lane[have], lane.since[have] = members[i], score
        else
          stale[#stale + 1] = members[i]
        end
      end
      if #stale > 0 then
        redis.call('ZREM', key, unpack(stale))
        lanes.stale = lanes.stale + #stale
        lane.more = lanes.stale < MOST_STALE
      end
    end
  end

  -- first are the lanes whose turn it is, at most so many, each with about what it will give of so much room; those in which nothing waits leave
  -- the line.
  function lanes.first(most, room)
    local found, at, all = {}, 0, false
    repeat
      local names = redis.call('ZRANGE', base .. 'lanes', at, most - 1)
      for _, name in ipairs(names) do
        local lane = { name = name, since = {}, more = true, used = 0, gives = 0, last = 0 }
        lanes.fill(lane, math.max(1, math.floor(room / #names)))
        if #lane > 0 then
          found[#found + 1] = lane
        elseif lanes.stale < MOST_STALE then
          redis.call('ZREM', base .. 'lanes', name)
        end
      end
      all = #found == at + #names
      at = #found
    until all or lanes.stale >= MOST_STALE
    return found
  end

  -- rest is how much more than one task each the agents of some members have that is due, up to a number.
  function lanes.rest(members, most)
    local agents, n = {}, 0
    for _, member in ipairs(members) do
      if not string.find(member, ':', 1, true) then agents[#agents + 1] = member end
    end
    for i, value in ipairs(#agents > 0 and redis.call('HMGET', base .. 'agents', unpack(agents)) or {}) do
      if value and byte(value) == byte(QUEUED) then
        local due = 0
        for level = 1, 3 do
          due = due + #redis.call('ZRANGEBYSCORE', base .. 'queue:' .. level .. ':' .. agents[i], '-inf', now, 'LIMIT', 0, most + 1)
        end
        n = n + math.max(due - 1, 0)
      end
    end
    return math.min(n, most)
  end

  -- share divides room among lanes: equally, and what one cannot use goes to the others. Each lane may give so many then, and `used` of its members come
  -- to their turn; last is its place among those that were served.
  function lanes.share(all, room)
    local live, step = all, 0
    while room > 0 and #live > 0 do
      local share, again = math.max(1, math.floor(room / #live)), {}
      for _, lane in ipairs(live) do
        local want = math.min(share, room)
        lanes.fill(lane, lane.used + want)
        local members = math.min(#lane - lane.used, want)
        local got = members
        if members < want then
          lane.rest = lane.rest or lanes.rest(lane, room)
          got = members + math.min(lane.rest, want - members)
          lane.rest = lane.rest - got + members
        end
        if got > 0 then
          step = step + 1
          room, lane.used, lane.gives, lane.last = room - got, lane.used + members, lane.gives + got, step
          if got == want then again[#again + 1] = lane end
        end
      end
      live = again
    end
  end
  -- kept is what the lanes of some agents may still give: no other gets it.
  function lanes.kept(visiting)
    local n, seen_ = 0, {}
    for _, agent in ipairs(visiting) do
      -- guard: lanes-kept
      if agent.lane and not seen_[agent.lane] then n, seen_[agent.lane] = n + agent.lane.gives, true end
    end
    return n
  end

  -- divide lets the agents that are visited share what their lanes may still give, and want is how much that is for one of them; nil if it is in
  -- none.
  function lanes.divide(visiting)
    for _, agent in ipairs(visiting) do
      if agent.lane then agent.lane.agents, agent.lane.free = 0, agent.lane.gives end
    end
    for _, agent in ipairs(visiting) do
      if agent.lane then agent.lane.agents = agent.lane.agents + 1 end
    end
  end
  function lanes.want(agent)
    local lane = agent.lane
    if not lane then return nil end
    -- guard: lanes-quota
    local n = math.min(math.max(1, math.floor(lane.gives / lane.agents)), lane.free)
    lane.free = lane.free - n
    return n
  end

  -- choose returns whose turn it is: members of the agenda, with since when each has waited; none if it goes by age. Nil if all that is due is
  -- taken. The caller notes what it has chosen by `commit`; `lane_of` has the lane of each.
  -- rule: tenants
  function lanes.choose(limit, room, width)
    if #redis.call('ZRANGEBYSCORE', base .. 'agenda', '-inf', now, 'LIMIT', limit, 1) == 0 then
      local due = redis.call('ZRANGEBYSCORE', base .. 'agenda', '-inf', now, 'LIMIT', 0, limit)
      if #due + lanes.rest(due, limit) <= limit then return nil end
    end
    redis.call('ZREM', base .. 'agenda', '') -- the first write must be one that is allowed when memory is full
    lanes.catch_up()
    local visit = (redis.call('HGET', base .. 'visits', VISITS) or 0) + 1
    local chosen = { since = {}, visit = visit, divide = lanes.divide, want = lanes.want, kept = lanes.kept, commit = lanes.commit, find = lanes.lane_of }
    -- guard: lanes-by-age
    chosen.lanes = visit % BY_AGE ~= 0 and lanes.first(width, room) or {}
    lanes.share(chosen.lanes, room)
    local n = 0
    for _, lane in ipairs(chosen.lanes) do
      for i = 1, lane.used do
        n = n + 1
        chosen[n], chosen.since[n] = lane[i], lane.since[i]
      end
    end
    return chosen
  end

  function lanes.lane_of(chosen)
    local of = {}
    for _, lane in ipairs(chosen.lanes) do
      for i = 1, lane.used do of[lane[i]] = lane end
    end
    return of
  end

  -- commit notes whose turn it was. Gone says that all that was chosen leaves the agenda.
  function lanes.commit(chosen, gone)
    local visits, places = { VISITS, chosen.visit }, {}
    for _, lane in ipairs(chosen.lanes) do
      if lane.last > 0 then
        local number = string.format('%.0f', chosen.visit * 1e6 + lane.last)
        visits[#visits + 1], visits[#visits + 2] = VISIT_OF .. lane.name, number
        places[#places + 1], places[#places + 2] = number, lane.name
        if gone then redis.call('ZREM', base .. 'lane:' .. lane.name, unpack(lane, 1, lane.used)) end
      end
    end
    redis.call('HSET', base .. 'visits', unpack(visits))
    -- guard: lanes-turns
    if #places > 0 then redis.call('ZADD', base .. 'lanes', unpack(places)) end
  end
  return lanes
end
