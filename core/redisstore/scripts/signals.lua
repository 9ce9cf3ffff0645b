-- signals: which tasks wait for what somebody else says.
-- needs: layout alone

-- What stands for a task that waits for a key: it was told nothing yet, or what stands behind the mark.
local UNTOLD = 'w'
local TOLD = 't'

-- unwait takes a task out of those that wait for a key.
local function unwait(agent, id)
  local key = redis.call('HGET', base .. 'awaits', agent .. ':' .. id)
  if not key then return end
  redis.call('HDEL', base .. 'awaits', agent .. ':' .. id)
  redis.call('HDEL', base .. 'awaits:' .. agent .. ':' .. key, id)
end

-- kept_for is what was said to nobody yet that waits for a key, if its time is not over.
local function kept_for(agent, key)
  local said = redis.call('GET', base .. 'signal:' .. agent .. ':' .. key)
  return said and tonumber(sub(said, 1, 13)) > now and sub(said, 14)
end

-- wait_for notes that a task waits for a key. It returns whether it was told already.
local function wait_for(agent, id, key)
  unwait(agent, id)
  local early = kept_for(agent, key)
  if early then redis.call('DEL', base .. 'signal:' .. agent .. ':' .. key) end
  redis.call('HSET', base .. 'awaits', agent .. ':' .. id, key)
  redis.call('HSET', base .. 'awaits:' .. agent .. ':' .. key, id, early and TOLD .. early or UNTOLD)
  return early
end
