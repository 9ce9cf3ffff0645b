-- limit: set or lift a limit or a budget, and let claims look at the lines behind it.
-- needs: look answers
-- KEYS[1] agenda
-- KEYS[2] limits
-- KEYS[3] lines
-- KEYS[4] open
-- KEYS[5] leases
-- ARGV[1] kind|key|each, or of a budget kind|key|each$unit$period
-- ARGV[2] what it allows, as in layout; '' to lift it
-- ARGV[3] where the page of lines begins, 0 first
-- ARGV[4] most limits
-- returns {now, 1 or 0 when there was nothing to change, -1 when there are too many, where the next page begins or 0}

local COUNT = 200
local id, said, cursor, changed_it = ARGV[1], ARGV[2], ARGV[3], ARGV[3] == '0'
if cursor == '0' then
  local old = redis.call('HGET', KEYS[2], id)
  if (old or '') == said then return { now, 0, '0' } end
  if said ~= '' and not old and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then return { now, -1, '0' } end
  -- guard: full-limit
  redis.call('ZREM', KEYS[5], '') -- the first write must be one that is allowed when memory is full
  if said == '' then redis.call('HDEL', KEYS[2], id) else redis.call('HSET', KEYS[2], id, said) end
end
local page, looked = redis.call('HSCAN', KEYS[3], cursor, 'COUNT', COUNT), false
for i = 1, #page[2], 2 do
  local name = page[2][i]
  if sub(name, 1, #id + 1) == id .. '|' then
    redis.call('ZREM', KEYS[5], HELD .. SCOPE_LIMIT .. name)
    redis.call('ZADD', KEYS[4], 'NX', now, SCOPE_LIMIT .. name)
    looked = true
  end
end
if looked then
  look()
  wake(now)
end
return changed_it and kept_answer({ now, 1, page[1] }) or { now, 1, page[1] }
