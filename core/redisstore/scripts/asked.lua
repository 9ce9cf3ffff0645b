-- asked: when some agents are due.
-- needs: look

-- due_of returns when the first of some agents is due, and a list of when each is, '' for never. What is parked under a
-- kind that the caller takes, or is being put back after a hold, may be theirs: then the first is due now.
local function due_of(agents, kinds)
  local dues, first = {}, nil
  local still = stopped()
  local values, scores = redis.call('HMGET', base .. 'agents', unpack(agents)), redis.call('ZMSCORE', base .. 'agenda', unpack(agents))
  for i, agent in ipairs(agents) do
    local s = scores[i]
    if values[i] and byte(values[i]) == byte(FEW) then s = next_of(agent, values[i]) end
    dues[i] = not still and s or ''
    if not still and s and (not first or tonumber(s) < tonumber(first)) then first = s end
  end
  if still or first and tonumber(first) <= now then return first, dues end
  if redis.call('EXISTS', base .. 'open') == 1 then return now, dues end
  if #kinds > 0 and redis.call('EXISTS', base .. 'parked') == 1 then
    for _, n in ipairs(redis.call('HMGET', base .. 'parked', unpack(kinds))) do
      if n then return now, dues end
    end
  end
  return first, dues
end
