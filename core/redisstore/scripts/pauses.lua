-- pauses: a page of the holds in force.
-- KEYS[1] agenda
-- KEYS[2] holds
-- ARGV[1] cursor
-- ARGV[2] about how many
-- returns {now, the next cursor, for each hold: scope, hold}
local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
local reply = { now, page[1] }
for i = 1, #page[2], 2 do
  if lasting(page[2][i + 1]) then
    local at = #reply
    reply[at + 1], reply[at + 2] = page[2][i], page[2][i + 1]
  end
end
return reply
