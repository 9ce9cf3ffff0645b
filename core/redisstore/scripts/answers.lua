-- answers: what each caller was answered last, so that a call whose answer was lost is not carried out again. Put behind
-- layout.lua. The last argument of a call says who calls; it is taken off ARGV: 1 if the call may have been carried out before,
-- else 0, the nonce(8) of the call, and the caller, who waits for one answer at a time.
local CALL = table.remove(ARGV)

-- answered_before is what the call was answered when it was carried out; nil if it was not, or changed nothing.
local function answered_before()
  if byte(CALL) ~= 49 then return nil end
  local kept = redis.call('HGET', base .. 'answers', sub(CALL, 10))
  if not kept or sub(kept, 14, 21) ~= sub(CALL, 2, 9) then return nil end
  local whole, reply = pcall(cmsgpack.unpack, sub(kept, 22))
  return whole and type(reply) == 'table' and reply or nil
end

-- kept_answer keeps the answer to a call that has changed something, and returns it.
local function kept_answer(reply)
  local value = string.format('%013.0f', now) .. sub(CALL, 2, 9) .. cmsgpack.pack(reply)
  redis.call('HSET', base .. 'answers', sub(CALL, 10), value)
  return reply
end
