-- expired: take back the tasks of a claim whose lease has ended.
-- needs: look holds

local recovered, ended_serial = 0, {} -- how many tasks; {agent, fence} of those that kept others of their agent back

-- crashed puts one task in its place, with one more crash or as what it was replaced by meanwhile.
local function crashed(agent, live, id, single, due)
  local _, kind = parse(live)
  take_back(agent, live, id, single, due, true)
  more(more_running, kind, -1)
  recovered = recovered + 1
end

-- recover takes back what a claim still held, and marks it as lost, so that a settle of the dead that comes late is refused. A
-- record that is not what we wrote must not keep the others from going back.
local function recover(fence)
  local found = redis.call('HMGET', base .. 'claims', fence, fence .. CLAIM_REFS)
  local whole, refs = pcall(cmsgpack.unpack, found[2] or '')
  local marks, after = found[1] or string.rep(' ', 16), {}
  if not whole or not found[1] then
    refs, marks = {}, sub(marks, -16)
    count('malformed', 1)
  end
  for i = 1, #marks - 16 do
    local mark = sub(marks, i, i)
    if mark == RUNNING then
      mark = LOST
      local agent, id = refs[3 * i - 2], refs[3 * i - 1]
      local live, single = find(agent, redis.call('HGET', base .. 'agents', agent), id)
      if live then crashed(agent, live, id, single, refs[3 * i]) end
      ended_serial[#ended_serial + 1] = { agent, fence }
    end
    after[i] = mark
  end
  close(fence, table.concat(after) .. sub(marks, -16))
end
