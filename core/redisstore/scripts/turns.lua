-- turns: whose turn it is in the agenda.
-- needs: layout alone

-- pages_of returns a function that gives a page of the members of the agenda that are due, those first that have waited longest, and
-- since when each has: all of them, or those of the agents that are asked for. Those that have waited since `after` or before are
-- passed over, or, of those of the very same time, the ones up to the member behind it, if that is still there.
local function pages_of(asked, after, width)
  local at, by = string.match(after, '^(%d+)|?(.*)$')
  local named, nth = nil, nil
  if asked then
    named = {}
    local values, scores = redis.call('HMGET', KEYS[2], unpack(asked)), redis.call('ZMSCORE', KEYS[1], unpack(asked))
    local function name(member, s)
      local score = tonumber(s or 'inf')
      if score <= now and (score > tonumber(at) or by ~= '' and score == tonumber(at)) then named[#named + 1] = { member, score } end
    end
    for i, agent in ipairs(asked) do
      name(agent, scores[i])
      local members = values[i] and byte(values[i]) == byte(FEW) and members_of(agent, values[i]) or {}
      if #members > 1 then
        for k, s in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(members, 2))) do name(members[k + 1], s) end
      end
    end
    table.sort(named, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
    for i, one in ipairs(by ~= '' and named or {}) do
      if one[1] == by and one[2] == tonumber(at) then nth = i end
    end
  elseif by ~= '' and tonumber(redis.call('ZSCORE', KEYS[1], by) or '') == tonumber(at) then
    nth = redis.call('ZRANK', KEYS[1], by) + 1
  end
  return function(from)
    local agents, scores = {}, {}
    from = from + (nth or 0)
    if named then
      for i = from + 1, math.min(#named, from + width) do agents[i - from], scores[i - from] = named[i][1], named[i][2] end
    else
      local first = at == '0' and '-inf' or (by == '' and '(' or '') .. at
      local due = nth and redis.call('ZRANGE', KEYS[1], from, from + width - 1, 'WITHSCORES')
        or redis.call('ZRANGEBYSCORE', KEYS[1], first, now, 'WITHSCORES', 'LIMIT', from, width)
      for i = 1, #due, 2 do
        if nth and tonumber(due[i + 1]) > now then break end
        agents[(i + 1) / 2], scores[(i + 1) / 2] = due[i], due[i + 1]
      end
    end
    return agents, scores
  end
end
