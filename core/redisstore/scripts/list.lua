-- list: where the next of an agent's tasks are, a bounded number of them found in bounded work, and the counts of a group.
-- needs: look holds
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] claims
-- KEYS[4] leases
-- KEYS[5] finished
-- KEYS[6] parked
-- ARGV[1] agent
-- ARGV[2] retention of finished records, ms
-- ARGV[3] group key or ''
-- ARGV[4] most tasks
-- ARGV[5] the statuses that are wanted, a letter each: w waiting, r running, c, f and x finished
-- ARGV[6] the mark that the walk goes on behind; '' to begin
-- returns {now, {live, completed, failed, cancelled} of the group, the mark to go on behind or '' at the end of the walk, for each
--          task: id, place as in read, but c, f and x for finished ones, and its mark}

-- A walk visits the waiting tasks by due time, those that run, those that are parked, then the finished ones:
--   w due | seq                                       behind this waiting task
--   r id                                              behind this running one
--   p stage | outer | outer next | start | next | #name | name id   behind this id of a page of a ZSCAN of parked:name; the stages
--                                                     are the places where tasks are parked, outer scans their names
--   f start | next | id                               behind this id of a page of an HSCAN of the history
-- What a walk goes on behind in the middle of a page of a scan is found again as the part of the scan from start to next.
local agent, oldest, limit, wanted, mark = ARGV[1], now - tonumber(ARGV[2]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local BYTES = 262144 -- of records that are looked at
local WORK = 1500 -- entries of other agents
local STEP = 100 -- entries of a step
local reply, n, work = { now, { 0, 0, 0, 0 }, '' }, 0, 0
local function wants(place) return string.find(wanted, place, 1, true) end
local function add(id, place, at)
  n = n + 1
  local k = 3 * n
  reply[k + 1], reply[k + 2], reply[k + 3] = id, place, at
end

if ARGV[3] ~= '' then
  local counts = redis.call('HMGET', base .. 'group:' .. ARGV[3], 'live', 'completed', 'failed', 'cancelled', 'over')
  if not counts[5] or tonumber(counts[5]) > now then
    for i = 1, 4 do reply[2][i] = tonumber(counts[i] or 0) end
  end
end

-- behind is the rank of the first entry of a queue behind a due time and a sequence number.
local function behind(key, due, seq)
  local low, high = 0, redis.call('ZCARD', key)
  while due and low < high do
    local middle = math.floor((low + high) / 2)
    local e = redis.call('ZRANGE', key, middle, middle, 'WITHSCORES')
    local at = tonumber(e[2])
    if at < due or at == due and struct.unpack('>I7', e[1]) <= seq then low = middle + 1 else high = middle end
  end
  return due and low or 0
end

-- in_agenda lists those of an agent's few tasks that wait: due time, sequence number and id of each.
local function in_agenda(value)
  local entries, names_, first = {}, names_of(value), first_of(value)
  local scores = redis.call('ZMSCORE', KEYS[1], unpack(members_of(agent, value)))
  local id = parse(first)
  if id and scores[1] then entries[1] = { tonumber(scores[1]), struct.unpack('>I7', first), id } end
  for i = 2, #scores do
    if scores[i] then entries[#entries + 1] = { tonumber(scores[i]), struct.unpack('>I7', names_[2 * i - 3]), names_[2 * i - 2] } end
  end
  return entries
end

-- waiting gives the next waiting tasks of an agent that has several; it returns the mark of the last one if there are more.
local function waiting(few, due, seq)
  local entries, levels = {}, 0
  for _, e in ipairs(few or {}) do
    levels = 2
    if not due or e[1] > due or e[1] == due and e[2] > seq then entries[#entries + 1] = e end
  end
  for level = 1, 3 do
    local key = base .. 'queue:' .. level .. ':' .. agent
    local from = behind(key, due, seq)
    local page = redis.call('ZRANGE', key, from, from + limit, 'WITHSCORES')
    if #page > 0 then levels = levels + 1 end
    for i = 1, #page, 2 do
      entries[#entries + 1] = { tonumber(page[i + 1]), struct.unpack('>I7', page[i]), sub(page[i], 8) }
    end
  end
  if levels > 1 then
    table.sort(entries, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  end
  for i = 1, math.min(#entries, limit) do
    local e = entries[i]
    add(e[3], IS_WAITING, string.format('w%.0f|%.0f', e[1], e[2]))
  end
  return #entries > limit and reply[#reply] or nil
end

-- running are the ids of the agent's tasks that run, sorted.
local function running()
  local ids, fences = {}, {}
  for _, fence in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
    if byte(fence) ~= byte(HELD) then
      fences[#fences + 1] = fence
      fences[#fences + 1] = fence .. CLAIM_REFS
    end
  end
  for from = 1, #fences, STEP do
    local found = redis.call('HMGET', KEYS[3], unpack(fences, from, math.min(from + STEP - 1, #fences)))
    for k = 1, #found, 2 do
      local marks, packed = found[k], found[k + 1]
      local whole, refs = false, nil
      if marks and packed and string.find(packed, agent, 1, true) then whole, refs = pcall(cmsgpack.unpack, packed) end
      for i = 1, whole and #refs / 3 or 0 do -- what we did not write a claim takes away
        if refs[3 * i - 2] == agent and byte(marks, i) == byte(RUNNING) then ids[#ids + 1] = refs[3 * i - 1] end
      end
    end
  end
  table.sort(ids)
  return ids
end

-- beyond says whether a cursor of a scan comes behind another: scans count from the highest bit on, and 0 is the end.
local function beyond(a, b)
  if a == b or b == '0' then return false end
  if a == '0' then return true end
  a, b = tonumber(a), tonumber(b)
  while a % 2 == b % 2 do a, b = math.floor(a / 2), math.floor(b / 2) end
  return a % 2 > b % 2
end

-- part is a page of a scan from `start` on, and where the next one starts. A page that was begun before ends at next_; it is
-- taken a bucket at a time, as the table may have grown since; what is more than a page ever has is left for the next one.
local function part(scan, start, next_, count_)
  if next_ == '' then
    local page = scan(start, count_)
    return page[2], page[1]
  end
  local all, size = {}, 0
  repeat
    local page = scan(start, 1)
    if beyond(page[1], next_) then break end
    for i = 1, #page[2] do
      all[#all + 1] = page[2][i]
      size = size + #page[2][i]
    end
    start = page[1]
  until start == next_ or start == '0' or #all > WORK or size > 4 * BYTES
  return all, start
end

-- give adds the ids of a page of a scan, but for those up to `last` if it has given these before; false if there was no room.
local function give(ids, places, last, at)
  table.sort(ids)
  for _, id in ipairs(ids) do
    if not last or id > last then
      if n == limit then return false end
      add(id, places[id] or IS_PARKED, at .. id)
    end
  end
  return true
end

-- bay_of gives the agent's tasks that are parked under a name. It returns where to go on if it had to stop.
local function bay_of(name, head, start, next_, last)
  local tail = '|' .. #name .. '|' .. name
  local function scan(cursor, count_)
    return redis.call('ZSCAN', base .. 'parked:' .. name, cursor, 'MATCH', agent .. ':*', 'COUNT', count_)
  end
  while true do
    if n == limit or work > WORK then return head .. start .. '|' .. next_ .. tail .. last end
    local found, after = part(scan, start, next_, STEP)
    local ids = {}
    for i = 1, #found, 2 do ids[#ids + 1] = string.match(found[i], '^[^:]*:(.*)$') end
    work = work + STEP
    local ends = next_ ~= '' and next_ or after
    if not give(ids, {}, next_ ~= '' and last, head .. start .. '|' .. ends .. tail) then return reply[#reply] end
    start, next_, last = after, '', ''
    if start == '0' then return nil end
  end
end

-- names are a page of the names under which tasks are parked at a stage, sorted, and where the next page begins.
local function names_at(stage, outer, outer_next)
  if stage == 1 then return { HELD .. SCOPE_ALL, HELD .. SCOPE_AGENT .. agent, berth(agent), HELD_TASKS }, '0' end
  local found, after = part(function(cursor, count_)
    if stage == 4 then return redis.call('ZSCAN', base .. 'open', cursor, 'COUNT', count_) end
    return redis.call('HSCAN', stage == 2 and KEYS[6] or base .. 'holds', cursor, 'COUNT', count_)
  end, outer, outer_next, STEP)
  local names = {}
  for i = 1, #found, 2 do
    local name = found[i]
    local wide = byte(name) == byte(SCOPE_KIND) or byte(name) == byte(SCOPE_KEY)
    if stage == 2 and name ~= HELD then names[#names + 1] = name end
    if stage == 3 and wide or stage == 4 and wide and redis.call('HEXISTS', base .. 'holds', name) == 0 then
      names[#names + 1] = bay(name)
    end
  end
  table.sort(names)
  return names, after
end

-- parked goes on with the tasks that are parked. It returns where to go on if it had to stop.
local function parked(stage, outer, outer_next, start, next_, name, last)
  local held = tonumber(redis.call('HGET', KEYS[6], HELD) or 0) > 0
  for at = stage, 4 do
    while (held or at == 2) and outer do
      if n == limit or work > WORK then
        return table.concat({ 'p' .. at, outer, outer_next, start, next_, #name, name .. last }, '|')
      end
      local names, after = names_at(at, outer, outer_next)
      work = work + STEP
      local head = 'p' .. at .. '|' .. outer .. '|' .. (outer_next ~= '' and outer_next or after) .. '|'
      for _, this in ipairs(names) do
        if this > name then start, next_, last = '0', '', '' end
        if this >= name then
          local stopped = bay_of(this, head, start, next_, last)
          if stopped then return stopped end
        end
      end
      outer, outer_next, start, next_, name, last = after, '', '0', '', '', ''
      if outer == '0' then outer = nil end
    end
    outer, outer_next = '0', ''
  end
end

-- finished goes on with the records of an agent. It returns where to go on if it had to stop.
local function finished(start, next_, last)
  local kept = redis.call('HGET', KEYS[5], agent)
  if kept and kept ~= HISTORY then
    local id, record = outline(kept)
    if start == '0' and last == '' and wants(sub(record, 1, 1)) and ended_at(record) > oldest then
      if n == limit then return 'f0||' end
      add(id, sub(record, 1, 1), 'f0|0|' .. id)
    end
  end
  if kept ~= HISTORY then return nil end
  local function scan(cursor, count_) return redis.call('HSCAN', base .. 'history:' .. agent, cursor, 'COUNT', count_) end
  local bytes, looked = 0, 0
  while true do
    if n == limit or bytes > BYTES or looked > WORK / 6 then return 'f' .. start .. '|' .. next_ .. '|' .. last end
    local found, after = part(scan, start, next_, 1) -- a record may be large
    local ids, places = {}, {}
    for i = 1, #found, 2 do
      local id, record = found[i], found[i + 1]
      bytes, looked = bytes + #record, looked + 1
      if wants(sub(record, 1, 1)) and ended_at(record) > oldest then
        ids[#ids + 1] = id
        places[id] = sub(record, 1, 1)
      end
    end
    local at = 'f' .. start .. '|' .. (next_ ~= '' and next_ or after) .. '|'
    if not give(ids, places, next_ ~= '' and last, at) then return reply[#reply] end
    start, next_, last = after, '', ''
    if start == '0' then return nil end
  end
end

-- alive goes through the places of tasks that are live, as far as it comes; it returns where to go on if it had to stop. What
-- runs is listed in the same step as the last of what waits, as it may wait once more a moment later.
local function alive(value)
  local phase, stopped = sub(mark, 1, 1), nil
  if phase == 'f' or not value then return nil end
  if byte(value) == byte(INLINE) then
    local id = parse(sub(value, 2))
    local place_ = id and mark == '' and where(agent, id, sub(value, 2), agent)
    if place_ and wants(place_ == IS_RUNNING and IS_RUNNING or IS_WAITING) then add(id, place_, 'f0||') end
    return nil
  end
  local waits, runs, few = wants(IS_WAITING), wants(IS_RUNNING), byte(value) == byte(FEW) and in_agenda(value)
  if phase ~= 'p' then
    if waits and phase ~= 'r' then
      local due, seq = string.match(mark, '^w(%d+)|(%d+)$')
      stopped = waiting(few, tonumber(due), tonumber(seq))
      if stopped then return stopped end
    end
    local left = count_of(value) - (few and #few or 0)
    for level = 1, 3 do left = left - redis.call('ZCARD', base .. 'queue:' .. level .. ':' .. agent) end
    local ids = left > 0 and running() or {}
    if runs then
      local after = phase == 'r' and sub(mark, 2) or ''
      if n > 0 and n + #ids > limit then return reply[#reply] end
      for _, id in ipairs(ids) do
        if id > after then
          if n == limit then return reply[#reply] end
          add(id, IS_RUNNING, 'r' .. id)
        end
      end
    end
    if not waits or left <= #ids then return nil end
    return parked(1, '0', '', '0', '', '', '')
  end
  if not waits then return nil end
  local stage, outer, outer_next, start, next_, long, rest = string.match(mark, '^p(%d)|(%d+)|(%d*)|(%d+)|(%d*)|(%d+)|(.*)$')
  return parked(tonumber(stage), outer, outer_next, start, next_, sub(rest, 1, long), sub(rest, long + 1))
end

local stopped = alive(redis.call('HGET', KEYS[2], agent))
if not stopped and (wants(COMPLETED) or wants(FAILED) or wants(CANCELLED)) then
  local start, next_, last = string.match(mark, '^f(%d+)|(%d*)|(.*)$')
  stopped = finished(start or '0', next_ or '', last or '')
end
reply[3] = stopped or ''
return reply
