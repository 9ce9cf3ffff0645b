-- profile: set or delete the profile of an agent, if it is as the caller has seen it. Sent again it finds that it is so.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] profiles
-- ARGV[1] agent
-- ARGV[2] its profile as the caller has seen it, or ''
-- ARGV[3] what it is to be; '' to delete it
-- returns {now, 1, or 4 when it is another by now}

local DONE = 1
local CHANGED = 4
local agent, was, new = ARGV[1], ARGV[2], ARGV[3]
local old = redis.call('HGET', KEYS[2], agent) or ''
if old == new then return { now, DONE } end
if old ~= was then return { now, CHANGED } end
if new == '' then redis.call('HDEL', KEYS[2], agent) else redis.call('HSET', KEYS[2], agent, new) end
return { now, DONE }
