-- finished: what is kept of tasks that have ended. Put behind layout.lua.
-- leave takes n live tasks out of a group, which is over when none is left.
local function leave(group, n, retention)
  local key = base .. 'group:' .. group
  if redis.call('HINCRBY', key, 'live', -n) <= 0 then
    redis.call('HSET', key, 'over', now + retention)
    redis.call('PEXPIRE', key, retention)
  end
end

-- forget drops what is kept beside the records of tasks that are live no more: refs are agent:id, kinds theirs.
local function forget(refs, kinds)
  redis.call('HDEL', base .. 'state', unpack(refs))
  if redis.call('EXISTS', base .. 'orders') == 1 then redis.call('HDEL', base .. 'orders', unpack(refs)) end
  if redis.call('EXISTS', base .. 'pulse') == 1 then
    for i, pulse in ipairs(redis.call('HMGET', base .. 'pulse', unpack(refs))) do
      if dozing(pulse) then rested(kinds[i], -1) end
    end
    redis.call('HDEL', base .. 'pulse', unpack(refs))
  end
  if redis.call('EXISTS', base .. 'holds') == 1 then
    for i = 1, #refs do
      if redis.call('HDEL', base .. 'holds', 't:' .. refs[i]) == 1 then
        redis.call('ZREM', base .. 'leases', '@t:' .. refs[i])
      end
    end
  end
end

-- trim drops the records of a history that are too old, then the oldest of those that are too many; those that
-- failed are counted apart, so that a busy agent does not push its dead letters out. It returns how many were dropped
-- for want of room.
local function trim(key, most, oldest)
  local kept = { [true] = {}, [false] = {} }
  local drop, dropped = {}, 0
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local at = ended_at(all[i + 1])
    if at <= oldest then
      drop[#drop + 1] = all[i]
    else
      table.insert(kept[byte(all[i + 1]) == 102], { at, all[i] })
    end
  end
  for _, records in pairs(kept) do
    table.sort(records, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
    for i = 1, #records - most do
      drop[#drop + 1] = records[i][2]
      dropped = dropped + 1
    end
  end
  for i = 1, #drop, 1000 do redis.call('HDEL', key, unpack(drop, i, math.min(i + 999, #drop))) end
  return dropped
end

-- The records of tasks that have ended are gathered and written by remembered.
local done, history, renewed = {}, {}, {}
local function recall(agents)
  for i, value in ipairs(redis.call('HMGET', base .. 'finished', unpack(agents))) do done[agents[i]] = value end
end

local function remember(agent, id, record, retention)
  local value = done[agent]
  if value ~= '*' then renewed[agent] = true end
  if value and value ~= '*' then
    local other, old = outline(value)
    if other ~= id and ended_at(old) > now - retention then
      history[agent] = { other, old }
      value = '*'
    else
      value = false
    end
  end
  if not value then
    done[agent] = inline(id, record)
    return
  end
  done[agent] = '*'
  local h = history[agent]
  if not h then
    h = {}
    history[agent] = h
  end
  h[#h + 1] = id
  h[#h + 1] = record
end

local function remembered(most, retention)
  local sets = {}
  for agent in pairs(renewed) do
    sets[#sets + 1] = agent
    sets[#sets + 1] = done[agent]
  end
  if #sets > 0 then redis.call('HSET', base .. 'finished', unpack(sets)) end
  for agent, records in pairs(history) do
    local key = base .. 'history:' .. agent
    redis.call('HSET', key, unpack(records))
    if redis.call('HLEN', key) > 2 * most then count('trimmed', trim(key, most, now - retention)) end
  end
end
