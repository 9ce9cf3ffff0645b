-- lanes: whose turn it is among tenants, while more is due than one claim may take. The agenda stays what is true: lanes are an index of what
-- in it is due, made by the claims that need one, so that no other call pays for tenants. What is missing in a lane is found by age.
-- needs: layout alone

local MOST_SORTED = 5000 -- members of the agenda that one claim puts into lanes, at most
local MOST_STALE = 1000 -- entries of lanes that one claim drops, as they are there no more, at most
local FIRST_PAGE = 64 -- of the agenda, most of which may not be due yet
local BY_AGE = 32 -- each so-manyth claim goes by age alone: what lanes do not have must not wait for ever

-- with_lanes makes what follows only for a claim that needs it.
local function with_lanes()
  local lanes = { stale = 0 }

  -- put puts members of the agenda into the lanes of their tenants, those that have waited since before now.
  function lanes.put(members, scores)
    local by_name = {}
    for from = 1, #members, 1000 do
      local agents = {}
      for i = from, math.min(from + 999, #members) do agents[#agents + 1] = string.match(members[i], '^[^:]*') end
      for k, tenant in ipairs(redis.call('HMGET', base .. 'tenants', unpack(agents))) do
        local name, score = tenant or '', scores[from + k - 1]
        if score and tonumber(score) < now then
          local lane = by_name[name] or {}
          by_name[name] = lane
          lane[#lane + 1], lane[#lane + 2] = score, members[from + k - 1]
        end
      end
    end
    for name, lane in pairs(by_name) do
      for i = 1, #lane, 1000 do redis.call('ZADD', base .. 'lane:' .. name, unpack(lane, i, math.min(i + 999, #lane))) end
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
    local at, late = lanes.reached(), {}
    if at == 0 then lanes.clear() end
    for _, member in ipairs(redis.call('HKEYS', base .. 'laned')) do
      if member ~= LANED_TO then late[#late + 1] = member end
    end
    for i = 1, #late, 1000 do
      local some = { unpack(late, i, math.min(i + 999, #late)) }
      lanes.put(some, redis.call('ZMSCORE', base .. 'agenda', unpack(some)))
      redis.call('HDEL', base .. 'laned', unpack(some))
    end
    local members, scores, size, all = {}, {}, FIRST_PAGE, false
    repeat
      local page = redis.call('ZRANGE', base .. 'agenda', at, at + size - 1, 'WITHSCORES')
      all = #page < 2 * size
      for i = 1, #page, 2 do
        if tonumber(page[i + 1]) >= now then
          all = true
          break
        end
        members[#members + 1], scores[#scores + 1] = page[i], page[i + 1]
      end
      at, size = at + size, 1000
    until all or #members >= MOST_SORTED
    lanes.put(members, scores)
    -- guard: lanes-laned
    if #members > 0 then redis.call('HSET', base .. 'laned', LANED_TO, scores[#scores] .. ' ' .. members[#members]) end
  end

  -- fill reads so many members of a lane, in all; those that are not in the agenda as it says are dropped.
  function lanes.fill(lane, n)
    local key = base .. 'lane:' .. lane.name
    while #lane < n and lane.more do
      local page = redis.call('ZRANGE', key, #lane, n - 1, 'WITHSCORES')
      local members, stale = {}, {}
      for i = 1, #page, 2 do members[#members + 1] = page[i] end
      for i, score in ipairs(#members > 0 and redis.call('ZMSCORE', base .. 'agenda', unpack(members)) or {}) do
        -- guard: lanes-stale
        if score == page[2 * i] then lane[#lane + 1], lane.since[#lane.since + 1] = members[i], score else stale[#stale + 1] = members[i] end
      end
      if #stale > 0 then redis.call('ZREM', key, unpack(stale)) end
      lanes.stale = lanes.stale + #stale
      lane.more = #members > 0 and lanes.stale < MOST_STALE
    end
  end

  -- first are the lanes whose turn it is, at most so many; those in which nothing waits leave the line.
  function lanes.first(most)
    local found, at = {}, 0
    repeat
      local names = redis.call('ZRANGE', base .. 'lanes', at, most - 1)
      for _, name in ipairs(names) do
        local lane = { name = name, since = {}, more = true, used = 0, gives = 0, last = 0 }
        lanes.fill(lane, 1)
        if #lane > 0 then
          found[#found + 1] = lane
        elseif lanes.stale < MOST_STALE then
          redis.call('ZREM', base .. 'lanes', name)
        end
      end
      at = #found
    until #names == 0 or at >= most or lanes.stale >= MOST_STALE
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

  -- choose returns whose turn it is: members of the agenda, with since when each has waited, and the lane of each; nil if it goes by age.
  -- rule: tenants
  function lanes.choose(limit, room, width)
    local due = redis.call('ZRANGEBYSCORE', base .. 'agenda', '-inf', now, 'LIMIT', 0, limit + 1)
    if #due + lanes.rest(due, limit) <= limit then return nil end -- all of it is taken
    lanes.catch_up()
    local visit = redis.call('HINCRBY', base .. 'visits', VISITS, 1)
    -- guard: lanes-by-age
    if visit % BY_AGE == 0 then return nil end
    local all = lanes.first(width)
    if #all == 0 then return nil end
    lanes.share(all, room)
    local chosen, numbers, places = { since = {}, lane_of = {} }, {}, {}
    for _, lane in ipairs(all) do
      for i = 1, lane.used do
        chosen[#chosen + 1], chosen.since[#chosen + 1], chosen.lane_of[lane[i]] = lane[i], lane.since[i], lane
      end
      if lane.last > 0 then
        local number = string.format('%.0f', visit * 1e6 + lane.last)
        numbers[#numbers + 1], numbers[#numbers + 2] = VISIT_OF .. lane.name, number
        places[#places + 1], places[#places + 2] = number, lane.name
      end
    end
    chosen.divide, chosen.want, chosen.kept = lanes.divide, lanes.want, lanes.kept
    redis.call('HSET', base .. 'visits', unpack(numbers))
    -- guard: lanes-turns
    redis.call('ZADD', base .. 'lanes', unpack(places))
    return chosen
  end
  return lanes
end
