-- follow: say that somebody listens, and read what was published.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] events
-- KEYS[3] watched
-- ARGV[1] for how long somebody does, ms
-- ARGV[2] for how long events are kept, ms
-- ARGV[3] id of the event to go on behind; '' to read none, as from now on
-- ARGV[4] most events
-- returns {now, epoch, id of the last event or '', for each event: id, what it says}
--          epoch: when somebody began to listen, ms; it is a new one once nobody has for a while, and nothing was kept meanwhile

local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
last = last and last[1] or ''
local epoch = redis.call('GET', KEYS[3])
if epoch then
  redis.call('PEXPIRE', KEYS[3], ARGV[1])
else -- behind all that is kept, also after the clock was set back
  local before = tonumber(string.match(last, '^%d+') or 0)
  epoch = string.format('%.0f', math.max(now, before + 1))
  redis.call('SET', KEYS[3], epoch, 'PX', ARGV[1])
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
local reply = { now, epoch, last }
local entries = ARGV[3] ~= '' and redis.call('XRANGE', KEYS[2], '(' .. ARGV[3], '+', 'COUNT', ARGV[4]) or {}
for _, entry in ipairs(entries) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][2]
end
return reply
