-- signals: which tasks wait for what somebody else says.
-- needs: layout alone

-- What stands for a task that waits for a key: what it was told behind this mark, or which wait it is: the fence of the run that has asked, behind a 'w',
-- or behind an 'a' if only an approval counts.
local TOLD = 't'

-- unwait takes a task out of those that wait for a key.
local function unwait(agent, id)
  local key = redis.call('HGET', base .. 'awaits', agent .. ':' .. id)
  if not key then return end
  redis.call('HDEL', base .. 'awaits', agent .. ':' .. id)
  redis.call('HDEL', base .. 'awaits:' .. agent .. ':' .. key, id)
end

-- kept_for is what was said to nobody yet that waits for a key, if its time is not over, and the mark of the waits that it counts for.
local function kept_for(agent, key)
  local said = redis.call('GET', base .. 'signal:' .. agent .. ':' .. key)
  -- guard: signal-early
  if said and tonumber(sub(said, 1, 13)) > now then return sub(said, 15), sub(said, 14, 14) end
end

-- wait_for notes that a task waits for a key. It returns whether it was told already.
local function wait_for(agent, id, key, wait)
  unwait(agent, id)
  local early, mark = kept_for(agent, key)
  if mark == 'w' and sub(wait, 1, 1) == 'a' then early = nil end
  if early then redis.call('DEL', base .. 'signal:' .. agent .. ':' .. key) end
  redis.call('HSET', base .. 'awaits', agent .. ':' .. id, key)
  redis.call('HSET', base .. 'awaits:' .. agent .. ':' .. key, id, early and TOLD .. early or wait)
  return early ~= nil
end
