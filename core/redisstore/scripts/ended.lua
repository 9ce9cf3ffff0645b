-- ended: claims that have ended, of which the marks of the last ones still answer a settlement that is sent twice.
-- needs: layout alone

local ENDED_SLACK = 50 -- more of them than are kept, until they are cut: one cut of many costs little more than one of one
local MOST_CUT = 1000 -- at once

-- ended_claims notes claims of which nothing runs any more, and forgets the oldest of those before them.
local function ended_claims(fences, claims)
  local many = redis.call('LPUSH', base .. 'ended', unpack(fences)) - ENDED_KEPT
  if many <= ENDED_SLACK then return end
  local old, gone = redis.call('RPOP', base .. 'ended', tostring(math.min(many, MOST_CUT))), {}
  for i, marks in ipairs(redis.call('HMGET', claims, unpack(old))) do
    if marks then gone[#gone + 1], gone[#gone + 2] = old[i], CLAIM_NONCE .. sub(marks, -16) end
  end
  if #gone > 0 then redis.call('HDEL', claims, unpack(gone)) end
end

-- close ends a claim of which nothing runs any more.
-- rule: claim-ends
local function close(fence, marks)
  redis.call('HSET', base .. 'claims', fence, marks)
  redis.call('HDEL', base .. 'claims', fence .. CLAIM_REFS)
  redis.call('ZREM', base .. 'leases', fence)
  ended_claims({ fence }, base .. 'claims')
end
