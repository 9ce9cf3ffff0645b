-- answers: what each caller was answered last, so that a call whose answer was lost is not carried out again. Put behind
-- layout.lua. The last argument of a call says who calls; it is taken off ARGV: 1 if the call may have been carried out before,
-- else 0, the nonce(8) of the call, and the caller, who waits for one answer at a time.
local CALL = ARGV[#ARGV]
ARGV[#ARGV] = nil

-- answered_before is what the call was answered when it was carried out; nil if it was not, or changed nothing.
local function answered_before()
  if byte(CALL) ~= 49 then return nil end
  local kept = redis.call('HGET', base .. 'answers', sub(CALL, 10))
  if not kept or sub(kept, 1, 8) ~= sub(CALL, 2, 9) then return nil end
  local whole, reply = pcall(cmsgpack.unpack, sub(kept, 9))
  return whole and type(reply) == 'table' and reply or nil
end

-- kept_answer keeps the answer to a call that has changed something, and returns it. It begins with the time.
local function kept_answer(reply)
  redis.call('HSET', base .. 'answers', sub(CALL, 10), sub(CALL, 2, 9) .. cmsgpack.pack(reply))
  return reply
end
