-- pauses: a page of the holds in force.
-- needs: look
-- KEYS[1] agenda
-- KEYS[2] holds
-- ARGV[1] cursor
-- ARGV[2] about how many
-- returns {now, the next cursor, for each hold: scope, hold}

local BYTES = 262144 -- of holds that are looked at
local STEP = 50 -- how many are looked at together
local reply, cursor, n, bytes, most = { now, '0' }, ARGV[1], 0, 0, tonumber(ARGV[2])
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', math.min(STEP, most))
  cursor = page[1]
  for i = 1, #page[2], 2 do
    n, bytes = n + 1, bytes + #page[2][i + 1]
    if lasting(page[2][i + 1]) then
      local at = #reply
      reply[at + 1], reply[at + 2] = page[2][i], page[2][i + 1]
    end
  end
until cursor == '0' or n >= most or bytes >= BYTES
reply[2] = cursor
return reply
