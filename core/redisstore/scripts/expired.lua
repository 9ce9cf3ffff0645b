-- expired: end leases and holds whose time is over, and take back the tasks of those leases.
-- needs: look ended holds suspects

local EXPIRED = 2 -- leases that one claim ends, at most: a claim has to stay short when many processes died at once
local TERMS = 8 -- leases and holds together
local recovered, ended_serial = 0, {} -- how many tasks; {agent, fence} of those that kept others of their agent back

-- recover takes back what a claim still held, and marks it as lost, so that a settle of the dead that comes late is refused. A
-- record that is not what we wrote must not keep the others from going back.
local function recover(fence)
  local found = redis.call('HMGET', base .. 'claims', fence, fence .. CLAIM_REFS)
  local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
  local marks, after = found[1] or string.rep(' ', 16), {}
  local died_under = not redis.call('ZSCORE', base .. 'notices', LEAVES .. fence) and fence
  redis.call('ZREM', base .. 'notices', fence, LEAVES .. fence)
  if not whole or not found[1] then
    refs, marks = {}, sub(marks, -16)
    count('malformed', 1)
  end
  for i = 1, #marks - 16 do
    local mark = sub(marks, i, i)
    if mark == RUNNING then
      mark = LOST
      local agent, id = refs[3 * i - 2], refs[3 * i - 1]
      local live, member = find(agent, redis.call('HGET', base .. 'agents', agent), id)
      if live then -- with one more crash if its process died, or as what it was replaced by meanwhile
        -- guard: recovery
        take_back(agent, live, id, member, refs[3 * i], died_under)
        more(more_running, select(2, parse(live)), -1)
        unuse(agent .. ':' .. id)
        -- guard: recovered
        recovered = recovered + 1
        suspect.from[#suspect.from + 1] = sub(marks, -16, -9)
      end
      ended_serial[#ended_serial + 1] = { agent, fence }
    end
    after[i] = mark
  end
  close(fence, table.concat(after) .. sub(marks, -16))
end

-- expire ends what is over: holds, the waits of lines, and leases, of which each has more to do.
-- rule: expired-lease
local function expire(notice)
  local dead = 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', base .. 'leases', '-inf', now, 'LIMIT', 0, TERMS)) do
    if byte(member) == byte(HELD) then
      unhold(sub(member, 2))
    elseif suspect.noticed(member, notice) then -- its holder has until then
    elseif dead < EXPIRED then
      dead = dead + 1
      recover(member)
    else
      return
    end
  end
end
