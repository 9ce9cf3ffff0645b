-- receive: take a message for one of its deliveries, or note what became of it.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] receipts
-- KEYS[3] received
-- ARGV[1] message
-- ARGV[2] delivery
-- ARGV[3] state
-- ARGV[4] digest of what the message asks for
-- ARGV[5] for how long that is remembered, ms
-- returns {now}, or {now, state, digest} of the other delivery that has taken it

local BEGUN = 'b'
local DROPPED = 'x'
local FORGOTTEN = 20 -- messages at a time: more than one call can add, so that none stay

local message, by, state, digest, lasts = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local old = redis.call('HGET', KEYS[2], message)
if old and tonumber(sub(old, 1, 13)) <= now then old = false end
local mine = old and sub(old, 15, 30) == by
if state == BEGUN and old and not mine then return { now, sub(old, 14, 14), sub(old, 31) } end
if state == DROPPED then
  if mine and sub(old, 14, 14) == BEGUN then
    redis.call('HDEL', KEYS[2], message)
    redis.call('ZREM', KEYS[3], message)
  end
  return { now }
end
redis.call('ZREM', KEYS[3], '') -- the first write must be one that is allowed when memory is full
local over = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, FORGOTTEN)
if #over > 0 then
  redis.call('HDEL', KEYS[2], unpack(over))
  redis.call('ZREM', KEYS[3], unpack(over))
end
redis.call('HSET', KEYS[2], message, string.format('%013.0f', now + lasts) .. state .. by .. digest)
redis.call('ZADD', KEYS[3], string.format('%.0f', now + lasts), message)
-- Both go by themselves once nobody sends any more, a minute after the last is over: what is over they say themselves.
local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2] - now + 60000
redis.call('PEXPIRE', KEYS[2], last)
redis.call('PEXPIRE', KEYS[3], last)
return { now }
