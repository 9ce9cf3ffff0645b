-- sweep: drop finished records that are too old, a bounded number of agents at a time.
-- KEYS[1] agenda
-- KEYS[2] finished
-- ARGV[1] cursor of the sweep
-- ARGV[2] retention of finished records, ms
-- ARGV[3] most finished records of an agent
-- returns {the next cursor}
local oldest, most = now - tonumber(ARGV[2]), tonumber(ARGV[3])
local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', 100)
for i = 1, #page[2], 2 do
  local agent, value = page[2][i], page[2][i + 1]
  if value == '*' then
    local key = base .. 'history:' .. agent
    count('trimmed', trim(key, most, oldest))
    if redis.call('EXISTS', key) == 0 then redis.call('HDEL', KEYS[2], agent) end
  else
    local _, record = outline(value)
    if ended_at(record) <= oldest then redis.call('HDEL', KEYS[2], agent) end
  end
end
return { page[1] }
