-- profile: set or delete the profile of an agent with its limits and budgets, if it is as the caller has seen it, and let claims look at the
--          lines behind them. Sent again it finds that it is so.
-- needs: look counting bounded withdraw
-- KEYS[1] agenda
-- KEYS[2] profiles
-- KEYS[3] bounds
-- KEYS[4] lines
-- KEYS[5] open
-- KEYS[6] leases
-- ARGV[1] agent
-- ARGV[2] its profile as the caller has seen it, or ''
-- ARGV[3] what it is to be; '' to delete it
-- ARGV[4] its limits and budgets, as in layout; '' for none
-- ARGV[5] its quota, as in layout; '' for none
-- ARGV[6] tasks that recur, as the caller has read them, a line for each: SHA-1 of its record, then its id; those that are still so are counted if
--         the profile is the new one already
-- ARGV[7] its tenant; '' for none
-- returns {now, 1, or 4 when it is another by now}

local DONE = 1
local CHANGED = 4
local agent, was, new, bounds = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('HGET', KEYS[2], agent) or ''
if old == new and ARGV[6] ~= '' then
  redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full
  local most = string.match(redis.call('HGET', base .. 'quotas', agent) or '', '^%x+|%d+|(%d+)')
  local value = redis.call('HGET', base .. 'agents', agent)
  for sum, id in string.gmatch((tonumber(most) or 0) > 0 and ARGV[6] or '', '(%x+) ([^\n]+)') do
    local live = find(agent, value, id)
    -- guard: quota-enrolled-as-read
    if live and redis.sha1hex(sub(live, 8)) == sum then redis.call('HSET', base .. 'recurs:' .. agent, id, '') end
  end
end
if old == new then return { now, DONE } end
if old ~= was then return { now, CHANGED } end
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full
if new == '' then redis.call('HDEL', KEYS[2], agent) else redis.call('HSET', KEYS[2], agent, new) end
local recurring, paced = string.match(ARGV[5], '^%x+|%d+|(%d+)|%d+|(%d+)$')
if ARGV[5] == '' then redis.call('HDEL', base .. 'quotas', agent) else redis.call('HSET', base .. 'quotas', agent, ARGV[5]) end
if (tonumber(recurring) or 0) == 0 then redis.call('DEL', base .. 'recurs:' .. agent) end
if (tonumber(paced) or 0) == 0 then redis.call('HDEL', base .. 'paced', agent) end
local tenant = redis.call('HGET', base .. 'tenants', agent) or ''
if tenant ~= ARGV[7] then
  -- rule: tenants
  if ARGV[7] == '' then redis.call('HDEL', base .. 'tenants', agent) else redis.call('HSET', base .. 'tenants', agent, ARGV[7]) end
  for _, member in ipairs(redis.call('EXISTS', base .. 'laned') == 1 and members_of(agent, redis.call('HGET', base .. 'agents', agent)) or {}) do
    redis.call('ZREM', base .. 'lane:' .. tenant, member)
    -- guard: lanes-move
    redis.call('HSET', base .. 'laned', member, '')
  end
end
local had, looked = redis.call('HGET', KEYS[3], agent) or '', false
if had ~= bounds then
  if bounds == '' then redis.call('HDEL', KEYS[3], agent) else redis.call('HSET', KEYS[3], agent, bounds) end
  local list = counting.listed(had)
  for i = 1, #list, 2 do
    local name = list[i] .. '|' .. agent
    if redis.call('HEXISTS', KEYS[4], name) == 1 then
      redis.call('ZREM', KEYS[6], HELD .. SCOPE_LIMIT .. name)
      redis.call('ZADD', KEYS[5], 'NX', now, SCOPE_LIMIT .. name)
      looked = true
    end
  end
end
withdraw()
if looked then
  look()
  wake(now)
end
return { now, DONE }
