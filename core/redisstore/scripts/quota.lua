-- quota: the quotas of agents, and what they leave room for.
-- needs: layout alone

-- quota is what is done about them (a table, as a script has only so many names); of has those that were read, by agent.
local quota = { of = {} }
local QUOTA_SPAN = 5000 -- submits are counted in spans, each of which is forgotten a minute after its end: store.Quota
local QUOTA_WINDOW = 60000
local QUOTA_REFUSES = '!' -- in front of which part it is, its limit, how much is used and when there is room again
local QUOTA_CHANGED = -3 -- as submit answers what has changed
-- How a task counts: whether it recurs, and whether it is bound.
local QUOTA_RECURS = '1'
local QUOTA_BOUND = '2'
local QUOTA_BOTH = '3'

-- quota.read reads those of some agents.
function quota.read(names)
  for i, text in ipairs(redis.call('HMGET', base .. 'quotas', unpack(names))) do
    local mark, live, recurring, bytes, submits = string.match(text or '', '^(%x+)|(%d+)|(%d+)|(%d+)|(%d+)$')
    if mark and not quota.of[names[i]] then
      quota.of[names[i]] = {
        agent = names[i], mark = mark, live = tonumber(live), recurring = tonumber(recurring), bytes = tonumber(bytes),
        kib = math.floor(bytes / 1024), submits = tonumber(submits), ids = {}, fresh = 0,
      }
    end
  end
end

-- quota.recurring is how many tasks recur, with those of this call; quota.recurs whether one of them does.
function quota.recurring(q)
  q.recur = q.recur or redis.call('HLEN', base .. 'recurs:' .. q.agent)
  return q.recur
end
function quota.recurs(q, id)
  if q.ids[id] == nil then q.ids[id] = redis.call('HEXISTS', base .. 'recurs:' .. q.agent, id) == 1 end
  return q.ids[id]
end

-- quota.submitted is how many tasks were submitted within a minute, and when there is room for another.
function quota.submitted(q)
  if not q.spans then
    q.spans, q.have = {}, 0
    for slot, n in string.gmatch(redis.call('HGET', base .. 'paced', q.agent) or '', '(%d+):(%d+)') do
      if (slot + 1) * QUOTA_SPAN + QUOTA_WINDOW > now then
        q.spans[#q.spans + 1] = { tonumber(slot), tonumber(n) }
        q.have = q.have + n
      end
    end
    table.sort(q.spans, function(a, b) return a[1] < b[1] end)
  end
  local this, left, at = math.floor(now / QUOTA_SPAN), q.have + q.fresh, nil
  for _, s in ipairs(q.spans) do
    left = left - s[2] - (s[1] == this and q.fresh or 0)
    if left < q.submits and not at then at = s[1] end
  end
  return q.have + q.fresh, ((at or this) + 1) * QUOTA_SPAN + QUOTA_WINDOW
end

function quota.says(part, limit, used, ends) return string.format('%s%s%.0f|%.0f|%.0f', QUOTA_REFUSES, part, limit, used, ends or 0) end

-- quota.refuses is the answer for a task that there is no room for: live is how many tasks the agent has by then, fresh whether it replaces
-- none of them, mark that of the quota that it was checked by, nil if none is asked for.
function quota.refuses(q, id, flag, mark, live, fresh)
  if flag ~= QUOTA_BOUND and flag ~= QUOTA_BOTH then return nil end
  -- guard: quota-mark-on-redis
  if mark and mark ~= q.mark then return QUOTA_CHANGED end
  -- guard: quota-live-on-redis
  if q.live > 0 and fresh and live >= q.live then return quota.says('l', q.live, live) end
  if q.recurring > 0 and flag == QUOTA_BOTH and not quota.recurs(q, id) then
    -- guard: quota-recurring-on-redis
    if quota.recurring(q) >= q.recurring then return quota.says('r', q.recurring, quota.recurring(q)) end
  end
  if q.submits > 0 then
    local n, ends = quota.submitted(q)
    -- guard: quota-submits-on-redis
    if n >= q.submits then return quota.says('s', q.submits, n, ends) end
  end
end

-- quota.too_heavy is the answer for a task that adds so many KiB to what its agent has.
function quota.too_heavy(q, flag, have, kib)
  if flag ~= QUOTA_BOUND and flag ~= QUOTA_BOTH or q.bytes == 0 or kib <= 0 then return nil end
  -- guard: quota-bytes-on-redis
  if have + kib > q.kib then return quota.says('b', q.bytes, have * 1024) end
end

-- quota.stored notes that a task is stored; quota.write writes what was noted.
function quota.stored(q, id, flag)
  local recurs = flag == QUOTA_RECURS or flag == QUOTA_BOTH
  if q.recurring > 0 and recurs ~= quota.recurs(q, id) then
    q.recur = quota.recurring(q) + (recurs and 1 or -1)
    q.ids[id], q.changed = recurs, true
  end
  if flag == QUOTA_BOUND or flag == QUOTA_BOTH then q.fresh = q.fresh + 1 end
end

function quota.write()
  for agent, q in pairs(quota.of) do
    for id, recurs in pairs(q.changed and q.ids or {}) do
      if recurs then redis.call('HSET', base .. 'recurs:' .. agent, id, '') else redis.call('HDEL', base .. 'recurs:' .. agent, id) end
    end
    if q.fresh > 0 and q.submits > 0 then
      quota.submitted(q)
      local this, text = math.floor(now / QUOTA_SPAN), {}
      for _, s in ipairs(q.spans) do
        if s[1] == this then q.fresh = q.fresh + s[2] else text[#text + 1] = string.format('%.0f:%.0f', s[1], s[2]) end
      end
      text[#text + 1] = string.format('%.0f:%.0f', this, q.fresh)
      redis.call('HSET', base .. 'paced', agent, table.concat(text, ','))
    end
  end
end

-- quota.one is the answer for a task that is stored by itself, if the quota of its agent has no room for it; else the task counts.
function quota.one(agent, value, id, record, flag, mark)
  quota.read({ agent })
  local q = quota.of[agent]
  if not q then return nil end
  local have = tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)
  local against = quota.refuses(q, id, flag, mark, count_of(value), true) or quota.too_heavy(q, flag, have, heft(record, 0))
  if not against then quota.stored(q, id, flag) end
  quota.write()
  quota.of = {}
  return against
end
