-- book: owe an alarm of a clock outside and say whether the caller is to set it, or note that the clock has confirmed one.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] alarms
-- KEYS[3] owed
-- ARGV[1] when, ms; 0 for none
-- ARGV[2] tag of the process
-- ARGV[3] how long the process has to set it, ms; 0 for one without a clock, '' if the clock has confirmed it
-- ARGV[4] most alarms that are remembered
-- ARGV[5] how long after a booking the hosts count as called by alarms, and an earlier one is one for soon, ms
-- ARGV[6] the latter
-- ARGV[7] how early an alarm may ring, ms
-- returns {now, next, by, owed, set, whether the hosts are called by alarms}

local LAST = '' -- the member that has when an alarm was booked
local at, tag, span = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
-- The first write must be one that is allowed when memory is full.
redis.call('ZREM', KEYS[2], '')
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
if #over > 0 then redis.call('ZREM', KEYS[2], unpack(over)) end

local function add(key, score, member)
  redis.call('ZADD', key, score, member)
  local beyond = redis.call('ZRANGE', key, ARGV[4], -1)
  if #beyond > 0 then redis.call('ZREM', key, unpack(beyond)) end
end

local list, last, owed = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), nil, {}
for i = 1, #list, 2 do
  local member, score = list[i], tonumber(list[i + 1])
  if member == LAST then
    last = score
  else
    local till, of = string.match(member, '^(%d+)|(.*)$')
    owed[#owed + 1] = { member = member, at = score, mine = of == tag, free = of == tag or tonumber(till) <= now }
  end
end

if not span then
  for _, o in ipairs(owed) do
    if o.at <= at and (o.mine or o.free and o.at <= now) then redis.call('ZREM', KEYS[3], o.member) end
  end
  if at > now then add(KEYS[2], at, ARGV[1]) end
  redis.call('ZADD', KEYS[3], now, LAST)
  return { now }
end

local coming, by = 0, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local time = tonumber(member)
  if time and coming == 0 then coming = time end
  if time and by == 0 and (time == at or time < at and time > now + tonumber(ARGV[7])) then by = time end
end
local fleet = span > 0 or last and now - last < tonumber(ARGV[5])
local wanted, free, set = at > 0 and by == 0, nil, 0
for _, o in ipairs(owed) do
  if o.free then
    free = free or o
  elseif o.at <= at then
    wanted = false
  end
end
local owes = string.format('%.0f|', now + span) .. tag
if span > 0 and free and (not wanted or free.at <= at) then
  set = free.at
  redis.call('ZREM', KEYS[3], free.member)
  add(KEYS[3], set, owes)
elseif wanted and fleet then
  local soon = math.ceil((now + tonumber(ARGV[6])) / 1000) * 1000
  if span > 0 and coming > 0 and at > soon and last and now - last < tonumber(ARGV[6]) then at = soon end
  if span > 0 then set = at end
  add(KEYS[3], at, owes)
  if not owed[1] or at < owed[1].at then owed[1] = { at = at } end
end
return { now, coming, by, owed[1] and owed[1].at or 0, set, fleet and 1 or 0 }
