-- signal: tell those who wait for a key, or keep what is said for the first who will.
-- needs: look holds answers signals
-- KEYS[1] agenda
-- KEYS[2] agents
-- ARGV[1] agent
-- ARGV[2] key
-- ARGV[3] what is said
-- ARGV[4] how long it is kept, ms
-- ARGV[5] 1 if it is the rest of one that was told to some already, which is not kept
-- ARGV[6] a if it is an approval, else w
-- ARGV[7] the only task that it is for, or ''
-- ARGV[8] the fence of the run of that task which has asked
-- ARGV[9] the message that has brought it, which does so once; or ''
-- ARGV[10] for how long that is remembered, ms
-- returns {now, 0 one is kept already, 1 tasks were told, 2 it is kept, 3 the only wait that it is for is not open, 4 whoever waits wants an approval,
--          how many were told, 1 if there may be more}

local TAKEN = 0
local RESUMED = 1
local KEPT = 2
local CLOSED = 3
local UNAPPROVED = 4
local MOST_TOLD = 100
local agent, key, said, counts, only = ARGV[1], ARGV[2], ARGV[3], ARGV[6], ARGV[7]
local message, sent = ARGV[9], base .. 'sent:' .. agent .. ':' .. ARGV[9]
-- guard: signal-once
if message ~= '' and ARGV[5] ~= '1' and tonumber(redis.call('GET', sent) or 0) > now then return { now, RESUMED, 0, 0 } end

-- note that the message has sent its signal: each time that says itself when it is over
local function remember()
  if message ~= '' then redis.call('SET', sent, string.format('%.0f', now + tonumber(ARGV[10])), 'PX', ARGV[10] + 60000) end
end

local waiting = base .. 'awaits:' .. agent .. ':' .. key
local told, rest, unapproved = 0, 0, false
local all = only == '' and redis.call('HGETALL', waiting) or { only, redis.call('HGET', waiting, only) or TOLD }
for i = 1, #all, 2 do
  local id, mark = all[i], sub(all[i + 1], 1, 1)
  -- guard: answer
  local meant = mark ~= TOLD and (only == '' or sub(all[i + 1], 2) == ARGV[8])
  if meant then
    local live, member = find(agent, redis.call('HGET', KEYS[2], agent), id)
    local place_, due, name = IS_RUNNING, 0, nil
    if live then place_, due, name = where(agent, id, live, member) end
    if place_ ~= IS_RUNNING and mark ~= counts and counts ~= 'a' then
      unapproved = true
    elseif place_ ~= IS_RUNNING then -- one that runs has waited for too long
      if told == MOST_TOLD then
        rest = 1
        break
      end
      redis.call('ZREM', KEYS[1], '') -- the first write must be one that is allowed when memory is full
      redis.call('HSET', waiting, id, TOLD .. said)
      state_.touch(agent .. ':' .. id)
      if due > now then -- what waits for something else as well keeps its place there
        lift(agent, id, live, member, place_, name)
        place(agent, member, live, id, now)
      end
      told = told + 1
    end
  end
end
if told > 0 then
  placed()
  -- guard: signal-wakes
  announce(now) -- first: look notes when the next is due, and nobody would be woken then
  look()
  if rest == 0 then remember() end
  return kept_answer({ now, RESUMED, told, rest })
end
if ARGV[5] == '1' then
  redis.call('ZREM', KEYS[1], '')
  remember()
  return { now, RESUMED, 0, 0 }
end
if unapproved then return { now, UNAPPROVED, 0, 0 } end
if only ~= '' then return { now, CLOSED, 0, 0 } end
if kept_for(agent, key) then return { now, TAKEN, 0, 0 } end
local until_ = string.format('%013.0f', now + tonumber(ARGV[4]))
redis.call('SET', base .. 'signal:' .. agent .. ':' .. key, until_ .. counts .. said, 'PX', ARGV[4] + 60000) -- it says itself when it is over
remember()
return kept_answer({ now, KEPT, 0, 0 })
