-- suspects: tasks whose last runs died with their process, and how many of them a claim takes.
-- needs: layout alone

local SORTS = 3 -- of suspects: those with one crash, with two, with three or more
local OLD_NOTICES = 3 -- the place of the last one that is looked at whenever one is given
-- What a claim knows of them: the rooms that it has, how many it has left, how many leases it has given notice of, and for each task that
-- it has taken back whose it was.
local suspect = { held = 0, notices = 0, from = {} }

-- suspect.noticed gives the holder of a lease that is over the time of a notice to extend it, from the first claim on that finds it so:
-- the store may have been away when it ended. It is false once that is over too. Notices of leases that have ended otherwise go with
-- later ones.
function suspect.noticed(fence, notice)
  -- guard: notice
  if notice == 0 or redis.call('ZSCORE', base .. 'notices', fence) then return false end
  -- A short lease, such as that of tasks that were claimed ahead of their time, has a short notice: half of what it has lasted, and half a
  -- second at least. A fence has the time of its claim.
  local lasted = redis.call('ZSCORE', base .. 'leases', fence) - math.floor(fence / 1024)
  if lasted > 0 then notice = math.min(notice, math.max(500, math.floor(lasted / 2))) end
  for _, old in ipairs(redis.call('ZRANGE', base .. 'notices', 0, OLD_NOTICES)) do
    if not redis.call('ZSCORE', base .. 'leases', string.match(old, '%d+')) then redis.call('ZREM', base .. 'notices', old) end
  end
  redis.call('ZADD', base .. 'notices', now, fence)
  redis.call('ZADD', base .. 'leases', now + notice, fence)
  suspect.notices = suspect.notices + 1
  return true
end

-- suspect.sort is the sort of a task that is a suspect; nil for any other.
function suspect.sort(ref)
  if not suspect.any or redis.call('HEXISTS', base .. 'suspects', ref) == 0 then return nil end
  local crashes = byte(redis.call('HGET', base .. 'state', ref) or '\1')
  if suspect.most and crashes > suspect.most then return nil end -- it is claimed to be ended
  return math.min(crashes, SORTS)
end

-- suspect.asked reads the rooms of a claim, behind its notice; it returns whether the claim may pass over suspects.
function suspect.asked(text)
  suspect.any = redis.call('EXISTS', base .. 'suspects') == 1
  local once, twice, often, most = string.match(text, '|(%d+)|(%d+)|(%d+)|(%d+)$')
  if most and most ~= '0' then suspect.most = tonumber(most) end
  if once then suspect.rooms = { tonumber(once), tonumber(twice), tonumber(often) } end
  return suspect.any and suspect.rooms
end

-- suspect.stays says whether a task is left where it is, as there is no room for its sort.
function suspect.stays(ref)
  local sort = suspect.rooms and suspect.sort(ref)
  if not sort or suspect.rooms[sort] > 0 then return false end
  suspect.held = suspect.held + 1
  return true
end

-- suspect.took notes that a task is claimed. A claim takes suspects of one sort: what dies beside another sort tells nothing.
function suspect.took(ref)
  local fence = redis.call('HGET', base .. 'suspects', ref)
  if fence and fence ~= '' and sub(fence, -1) ~= CLAIMED_SINCE then redis.call('HSET', base .. 'suspects', ref, fence .. CLAIMED_SINCE) end
  local sort = suspect.rooms and suspect.sort(ref)
  if not sort then return end
  local left_ = suspect.rooms[sort] - 1
  suspect.rooms = { 0, 0, 0 }
  suspect.rooms[sort] = left_
end

-- suspect.lease_of is how long tasks of a kind are held; suspect.leases has the kinds that are held for another time than usual.
-- rule: leases-of-kinds
function suspect.lease_of(kind, usual) return suspect.leases and suspect.leases[kind] or usual end
