-- answers: what each caller was answered last, so that a call whose answer was lost is not carried out again. The last
-- argument of a call says who calls; it is taken off ARGV: 1 if the call may have been carried out before, else 0, the nonce(8)
-- of the call, and the caller, who waits for one answer at a time.
-- needs: layout alone

local CALL = ARGV[#ARGV]
ARGV[#ARGV] = nil

local REPEATED = '1'
-- rule: repeated-call
if byte(CALL) == byte(REPEATED) then -- it ends here if it was carried out before; one that changed nothing is as new
  local kept = redis.call('HGET', base .. 'answers', sub(CALL, 10))
  if kept and sub(kept, 1, 8) == sub(CALL, 2, 9) then
    local whole, reply = pcall(cmsgpack.unpack, sub(kept, 9))
    if whole and type(reply) == 'table' then return reply end
  end
end

-- kept_answer keeps the answer to a call that has changed something, and returns it. It begins with the time.
local function kept_answer(reply)
  redis.call('HSET', base .. 'answers', sub(CALL, 10), sub(CALL, 2, 9) .. cmsgpack.pack(reply))
  if listened then reply[1] = -now end
  return reply
end
