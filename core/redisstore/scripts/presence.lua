-- presence: keep what a process says of itself, or return what all have said whose time is not over.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] processes
-- ARGV[1] tag of the process; '' to ask
-- ARGV[2] what it says
-- ARGV[3] for how long, ms
-- ARGV[4] most processes that are remembered
-- returns {now, how many others have said something, without those that need not live}, or when asked {now, for each process: tag, what it said}

local tag, info, lasts, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local all = redis.call('HGETALL', KEYS[2])
local reply, over, kept, others = { now }, {}, 0, 0
for i = 1, #all, 2 do
  if (tonumber(sub(all[i + 1], 1, 13)) or 0) <= now then
    over[#over + 1] = all[i]
  elseif tag == '' then
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = sub(all[i + 1], 14)
  elseif all[i] ~= tag then
    kept = kept + 1
    if sub(all[i], 1, 1) ~= '-' then others = others + 1 end
  end
end
if tag == '' then return reply end
redis.call('ZREM', KEYS[1], '') -- the first write must be one that is allowed when memory is full
if #over > 0 then redis.call('HDEL', KEYS[2], unpack(over)) end
if kept < most then
  redis.call('HSET', KEYS[2], tag, string.format('%013.0f', now + lasts) .. info)
end
reply[2] = others
return reply
