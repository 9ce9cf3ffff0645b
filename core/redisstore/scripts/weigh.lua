-- weigh: read a task, unless it is large and enough were read already. A claim visits whatever comes first, and must stay short
-- though somebody submits nothing but the largest payloads.
-- needs: layout alone

local MOST = 512 -- KiB of large tasks that are looked at, about: the next one is looked at while there were less
local LARGE = redis.call('EXISTS', base .. 'bytes') == 1 -- else nobody has large tasks, and nothing is weighed

-- weigher returns a function that reads a task of an agent with several, unless it is large and enough of them were read: then
-- it returns nil and true. What is read only to be weighed is at most as large as a record whose body is not.
local function weigher()
  local read = 0
  return function(ref)
    -- guard: weight
    local full = read >= MOST
    if full and redis.call('HSTRLEN', base .. 'tasks', ref) > 8192 then return nil, true end
    local live = redis.call('HGET', base .. 'tasks', ref)
    local kib = live and heft(live, 7) or 0
    if full and kib > 0 then return nil, true end
    read = read + kib
    return live, false, kib
  end
end
