-- repartition: what a repartition changes in one slot, as long as no later attempt at it has begun: it takes the slot for an
--        attempt, drops keys, or gives copies the names that they are for.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] mover
-- ARGV[1] number of the attempt
-- ARGV[2] take, drop or place
-- ARGV[3] what the names of copies begin with
-- ARGV[4..] 1 for each key: its name
-- returns {now, 1, or 0 if a later attempt has begun}

local TAKEN_FOR = 86400000 -- ms; a process that was stopped for longer, and then runs on, is refused too
local attempt, what, copies = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
-- guard: overtaken
if last > attempt or last < attempt and what ~= 'take' then return { now, 0 } end
redis.call('UNLINK', base .. copies) -- none: the first write must be one that is allowed when memory is full
if what == 'take' then redis.call('SET', KEYS[2], ARGV[1], 'PX', TAKEN_FOR) end
for i = 4, #ARGV do
  local name, copy = base .. ARGV[i], base .. copies .. ARGV[i]
  if what == 'drop' then
    redis.call('UNLINK', name)
  elseif redis.call('EXISTS', copy) == 1 then -- else it was placed, and the answer was lost
    redis.call('RENAME', copy, name)
  end
end
return { now, 1 }
