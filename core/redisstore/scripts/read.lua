-- read: tasks of one agent, by id.
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] state
-- KEYS[4] finished
-- ARGV[1] agent
-- ARGV[2] retention of finished records, ms
-- ARGV[3..] 1 for each task: id
-- returns {now, for each id: place, live or record, due or 0, state or ''}; place: w waiting, r running, p parked,
--          d finished, '' unknown
local agent, oldest = ARGV[1], now - tonumber(ARGV[2])
local value = redis.call('HGET', KEYS[2], agent)
local done = redis.call('HGET', KEYS[4], agent)

local function waiting(id, live, single)
  local due
  if single then
    due = redis.call('ZSCORE', KEYS[1], agent)
  else
    due = redis.call('ZSCORE', base .. 'queue:' .. sub(live, 8, 8) .. ':' .. agent, sub(live, 1, 7) .. id)
  end
  if due then return 'w', due end
  local _, kind = parse(live)
  due = redis.call('ZSCORE', base .. 'parked:' .. kind, agent .. ':' .. id)
  if due then return 'p', due end
  return 'r', 0
end

local function record(id)
  if done == '*' then return redis.call('HGET', base .. 'history:' .. agent, id) end
  if done then
    local other, r = outline(done)
    return other == id and r
  end
end

local reply = { now }
for i = 3, #ARGV do
  local live, single = find(agent, value, ARGV[i])
  local place, what, due, state = '', '', 0, ''
  if live then
    place, due = waiting(ARGV[i], live, single)
    what = live
    state = redis.call('HGET', KEYS[3], agent .. ':' .. ARGV[i]) or ''
  else
    local r = record(ARGV[i])
    if r and ended_at(r) > oldest then place, what = 'd', r end
  end
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = place, what, due, state
end
return reply
