-- unpark: put back tasks that were parked.
-- needs: weigh holds

local to_put_back = weigher()

-- put_back puts the first tasks of a kind or of a hold's bay, at most so many, in their places. It returns how many entries it
-- took out, those of tasks that are gone included, and whether it stopped because enough large ones were read.
local function put_back(name, most)
  local full, key = false, base .. 'parked:' .. name
  local entries, members, values = redis.call('ZRANGE', key, 0, most - 1, 'WITHSCORES'), {}, {}
  for i = 1, #entries, 2 do
    local agent, id = string.match(entries[i], '^([^:]*):(.*)$')
    local value = values[agent]
    if value == nil then
      value = redis.call('HGET', base .. 'agents', agent)
      values[agent] = value
    end
    local live, member
    if LARGE and value and byte(value) == byte(QUEUED) then
      live, full = to_put_back(entries[i])
      if full then break end
    else
      live, member = find(agent, value, id)
    end
    if live then place(agent, member, live, id, entries[i + 1]) end
    members[#members + 1] = entries[i]
  end
  if #members > 0 then
    redis.call('ZREM', key, unpack(members))
    unparked(name, #members)
  end
  return #members, full
end
