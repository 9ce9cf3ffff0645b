-- finished: what is kept of tasks that have ended.
-- needs: signals

-- leave takes n live tasks out of a group, which is over when none is left.
local function leave(group, n, retention)
  local key = base .. 'group:' .. group
  if redis.call('HINCRBY', key, 'live', -n) <= 0 then
    redis.call('HSET', key, 'over', now + retention)
    redis.call('PEXPIRE', key, retention)
    redis.call('HDEL', base .. 'groups', GROUP_LIVE .. group)
  end
end

-- unquoted takes tasks that are live no more out of those that the quotas of their agents count.
-- rule: quotas
local function unquoted(refs)
  local names = {}
  for i, ref in ipairs(refs) do names[i] = string.match(ref, '^[^:]*') end
  for i, own in ipairs(redis.call('HMGET', base .. 'quotas', unpack(names))) do
    -- guard: quota-ended-on-redis
    if own then redis.call('HDEL', base .. 'recurs:' .. names[i], sub(refs[i], #names[i] + 2)) end
  end
end

-- forget drops what is kept beside the records of tasks that are live no more: refs are agent:id, kinds theirs.
local function forget(refs, kinds)
  redis.call('HDEL', base .. 'state', unpack(refs))
  redis.call('HDEL', base .. 'suspects', unpack(refs))
  local there = redis.call('EXISTS', base .. 'awaits', base .. 'quotas', base .. 'quotas')
  if there > 1 then unquoted(refs) end
  if there % 2 == 1 then
    for i = 1, #refs do unwait(string.match(refs[i], '^([^:]*):(.*)$')) end
  end
  if redis.call('EXISTS', base .. 'groups') == 1 then redis.call('HDEL', base .. 'groups', unpack(refs)) end
  if redis.call('EXISTS', base .. 'orders') == 1 then
    local stamps = {}
    for i, ref in ipairs(refs) do stamps[i] = ORDERED .. ref end
    redis.call('HDEL', base .. 'orders', unpack(refs))
    redis.call('HDEL', base .. 'orders', unpack(stamps))
  end
  if redis.call('EXISTS', base .. 'pulse') == 1 then
    for i, pulse in ipairs(redis.call('HMGET', base .. 'pulse', unpack(refs))) do
      if dozing(pulse) then rested(kinds[i], -1) end
    end
    redis.call('HDEL', base .. 'pulse', unpack(refs))
  end
  -- rule: hold-ends-with-task
  if redis.call('EXISTS', base .. 'holds') == 1 then
    for i = 1, #refs do
      if redis.call('HDEL', base .. 'holds', SCOPE_TASK .. refs[i]) == 1 then
        redis.call('ZREM', base .. 'leases', HELD .. SCOPE_TASK .. refs[i])
      end
    end
  end
end

-- The index of a history. A history of up to `unlisted` records has none, unless one of them is large: looking at all of them
-- costs no more. One that a version without an index has left is listed as a whole when the next task of its agent ends, if
-- it is not too long; what is not listed goes by its age only, when a sweep comes by.
local UNLISTED = 128
local LISTABLE = 1000
local SLACK = 64
local STALE = 1000
local function slack(most) return math.min(SLACK, math.floor(most / 100)) end
local function unlisted(most) return math.min(UNLISTED, math.floor(most / 2)) end

-- limits_of reads how many records are kept of an agent, and how many KiB of large ones.
local function limits_of(text)
  local most, heaviest = string.match(text, '^(%d+)|(%d+)$')
  return tonumber(most), tonumber(heaviest)
end

-- heavy says whether a history has large records.
local WEIGHED = nil
local function heavy(agent)
  if WEIGHED == nil then WEIGHED = redis.call('EXISTS', base .. 'bytes') == 1 end
  if not WEIGHED then return false end
  local kib = redis.call('HMGET', base .. 'bytes', 'ends:' .. agent, 'dead:' .. agent)
  return kib[1] or kib[2]
end

local function unlist(agent)
  if redis.call('DEL', base .. 'ends:' .. agent, base .. 'dead:' .. agent) > 0 then
    redis.call('HDEL', base .. 'stale', 'ends:' .. agent, 'dead:' .. agent)
  end
end

-- enlist adds records, id and record in turn, to the index, by when they ended and then by id. It returns how long each
-- list is that it has added to, and how many it has added there.
local function enlist(agent, records)
  local added, lengths, counts, unsorted, ended, stamp = {}, {}, {}, {}, nil, nil
  for i = 1, #records, 2 do
    local record = records[i + 1]
    local class = class_of(record)
    local line = added[class]
    if not line then
      line = {}
      added[class] = line
    end
    local at, n = sub(record, 2, 14), #line
    if at ~= ended then ended, stamp = at, struct.pack('>I6', ended_at(record)) end -- most have ended just now
    local entry = stamp .. records[i]
    line[n + 1] = entry
    if n > 0 and entry < line[n] then unsorted[class] = true end
  end
  for class, line in pairs(added) do
    if unsorted[class] then table.sort(line) end
    lengths[class], counts[class] = redis.call('LPUSH', base .. class .. agent, unpack(line)), #line
  end
  return lengths, counts
end

-- cut takes up to `limit` entries from the old end of a list: those that are too old, and, if it has a hundredth more than
-- is kept, the oldest of those that are too many, as one cut of many costs less than many; and the oldest while what is large
-- weighs too much, but for the last. Those that failed are counted apart, so that a busy agent does not push its dead letters
-- out. It looks at as many bytes of records as the script has to spare. It returns how many records went, and how many entries.
local unfailed = {}
local drops, gone_adds, VERBS = 0, {}, { [99] = 0, [102] = 1, [120] = 2 } -- as end_of reads them
local spare = 262144 -- what the script writes is added: a history must not grow faster than it is cut
local function cut(agent, class, length, most, heaviest, retention, limit)
  local line, records_key, oldest = class .. agent, base .. 'history:' .. agent, now - retention
  local was = tonumber(redis.call('HGET', base .. 'stale', line) or 0)
  local weighed = WEIGHED ~= false and tonumber(redis.call('HGET', base .. 'bytes', line) or 0) or 0
  local stale, removed, taken, kib, step = was, 0, 0, weighed, weighed > 0 and 1 or SLACK -- what is large is looked at one by one
  -- Entries without a record count only once there are far too many of them.
  local function over() return math.max(length - stale - most, length - most - STALE, 0) end
  local cutting = over() > slack(most)
  while taken < limit and length > 0 and spare > 0 do
    local want = cutting and over() or 0
    local page = redis.call('LRANGE', base .. line, -math.min(limit - taken, step), -1)
    local ids, ends, old_ids = {}, {}, {}
    for i = #page, 1, -1 do
      local at = struct.unpack('>I6', page[i])
      if at > oldest and #ids >= want and (#ids > 0 or kib <= heaviest or length == 1) then break end
      ids[#ids + 1], ends[#ends + 1] = sub(page[i], 7), at
    end
    if #ids == 0 then break end
    for i, record in ipairs(redis.call('HMGET', records_key, unpack(ids))) do
      spare = spare - #(record or '')
      if record and ended_at(record) == ends[i] and class_of(record) == class then
        old_ids[#old_ids + 1] = ids[i]
        kib = kib - weight(#record - 14)
        if ends[i] > oldest then
          drops = drops + 1
          gone_adds[#gone_adds + 1] = string.format('%.0f', ends[i] * 4 + (VERBS[byte(record)] or 0))
          gone_adds[#gone_adds + 1] = agent .. ':' .. ids[i]
        end
      elseif stale > 0 then
        stale = stale - 1
      end
    end
    redis.call('LTRIM', base .. line, 0, -#ids - 1)
    if #old_ids > 0 then
      redis.call('HDEL', records_key, unpack(old_ids))
      if class == 'dead:' then
        for i = 1, #old_ids do unfailed[#unfailed + 1] = agent .. ':' .. old_ids[i] end
      end
    end
    length, taken, removed = length - #ids, taken + #ids, removed + #old_ids
  end
  weigh(line, kib - weighed)
  if stale ~= was and stale > 0 then redis.call('HSET', base .. 'stale', line, stale) end
  if was > 0 and stale == 0 then redis.call('HDEL', base .. 'stale', line) end
  return removed, taken
end

-- dropped keeps the ends of what cut has dropped before its time, and forgets up to `limit` of those that were long ago.
local function dropped(retention, limit)
  local known = now - math.min(KNOWN, retention)
  for i = 1, #gone_adds, 1000 do redis.call('ZADD', base .. 'gone', unpack(gone_adds, i, math.min(i + 999, #gone_adds))) end
  local faded = redis.call('ZRANGEBYSCORE', base .. 'gone', '-inf', known * 4 + 3, 'LIMIT', 0, limit)
  for i = 1, #faded, 1000 do redis.call('ZREM', base .. 'gone', unpack(faded, i, math.min(i + 999, #faded))) end
  if drops == 0 then return end
  count('trimmed', drops)
  redis.call('HSET', base .. 'counters', 'trimmed_at', now)
end

-- The records of tasks that have ended are gathered and written by remembered. fails are scores and members of those that failed, and
-- unfailed the members of those whose records go.
local done, history, renewed, fails = {}, {}, {}, {}
local function recall(agents)
  for i, value in ipairs(redis.call('HMGET', base .. 'finished', unpack(agents))) do done[agents[i]] = value end
end

-- rule: records
local function remember(agent, id, record, retention)
  local value = done[agent]
  if byte(record) == byte(FAILED) then
    fails[#fails + 1] = sub(record, 2, 14)
    fails[#fails + 1] = agent .. ':' .. id
  end
  if value ~= HISTORY then renewed[agent] = true end
  if value and value ~= HISTORY then
    local other, old = outline(value)
    if other ~= id and ended_at(old) > now - retention then
      history[agent] = { other, old }
      value = HISTORY
    else
      if byte(old) == byte(FAILED) then unfailed[#unfailed + 1] = agent .. ':' .. other end
      value = false
    end
  end
  if not value then
    done[agent] = inline(id, record)
    return
  end
  done[agent] = HISTORY
  local h = history[agent]
  if not h then
    h = {}
    history[agent] = h
  end
  h[#h + 1] = id
  h[#h + 1] = record
end

-- whole is a history, id and record in turn; nil if it is too large to be looked at.
local function whole(agent)
  local all, seen, cursor, bytes = {}, {}, '0', 0
  repeat
    local page = redis.call('HSCAN', base .. 'history:' .. agent, cursor, 'COUNT', 1)
    for i = 1, #page[2], 2 do
      bytes = bytes + #page[2][i + 1]
      if not seen[page[2][i]] then
        seen[page[2][i]] = true
        all[#all + 1], all[#all + 2] = page[2][i], page[2][i + 1]
      end
    end
    cursor = page[1]
    if bytes > 524288 then return nil end
  until cursor == '0'
  return all
end

-- listed keeps the index of a history of n records to which some were added, and cuts it.
local function listed(agent, records, n, most, heaviest, retention)
  local lengths, counts = enlist(agent, records)
  local fresh = n <= LISTABLE
  for _, class in ipairs({ 'ends:', 'dead:' }) do
    fresh = fresh and lengths[class] == counts[class] and (lengths[class] or redis.call('EXISTS', base .. class .. agent) == 0)
  end
  local all = fresh and n > #records / 2 and whole(agent)
  if all then
    redis.call('DEL', base .. 'ends:' .. agent, base .. 'dead:' .. agent)
    lengths, counts = enlist(agent, all)
  end
  for class, length in pairs(lengths) do
    local new = counts[class]
    local kib = WEIGHED and tonumber(redis.call('HGET', base .. 'bytes', class .. agent) or 0) or 0
    if length > most + slack(most) or length % 32 < new or kib > heaviest then -- the second for those that are too old, now and then
      n = n - cut(agent, class, length, most, heaviest, retention, SLACK + 2 * new)
    end
  end
  if n <= unlisted(most) and not heavy(agent) then unlist(agent) end
end

local function remembered(limits, retention)
  local most, heaviest = limits_of(limits)
  local sets = {}
  for agent in pairs(renewed) do
    sets[#sets + 1] = agent
    sets[#sets + 1] = done[agent]
  end
  if #sets > 0 then redis.call('HSET', base .. 'finished', unpack(sets)) end
  local shrunk
  for agent, records in pairs(history) do
    local key = base .. 'history:' .. agent
    redis.call('HSET', key, unpack(records))
    for i = 2, #records, 2 do
      local kib = weight(#records[i] - 14)
      spare = spare + 2 * #records[i]
      if kib > 0 then
        weigh(class_of(records[i]) .. agent, kib)
        WEIGHED = true
      end
    end
    local n = redis.call('HLEN', key)
    if n > unlisted(most) or heavy(agent) then
      listed(agent, records, n, most, heaviest, retention)
    else
      -- It may have shrunk, and has an index in which what comes now would be missing.
      if shrunk == nil then shrunk = redis.call('EXISTS', base .. 'stale') == 1 end
      if shrunk then unlist(agent) end
    end
  end
  if drops > 0 then dropped(retention, 2 * drops) end
  for i = 1, #unfailed, 1000 do redis.call('ZREM', base .. 'failed', unpack(unfailed, i, math.min(i + 999, #unfailed))) end
  for i = 1, #fails, 1000 do redis.call('ZADD', base .. 'failed', unpack(fails, i, math.min(i + 999, #fails))) end
end
