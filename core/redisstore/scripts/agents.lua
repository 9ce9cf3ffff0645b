-- agents: a page of the agents with live tasks.
-- needs: look
-- KEYS[1] agenda
-- KEYS[2] agents
-- ARGV[1] cursor
-- ARGV[2] about how many
-- returns {now, the next cursor, for each agent: its name, live tasks, next due or '', 1 if it is paused}

local BYTES = 131072
local reply, cursor, n, bytes, most = { now, '0' }, ARGV[1], 0, 0, tonumber(ARGV[2])
local HOLDS = redis.call('EXISTS', base .. 'holds') == 1
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 1) -- an agent with one task has it whole
  cursor = page[1]
  for i = 1, #page[2], 2 do
    local agent, value = page[2][i], page[2][i + 1]
    local at = #reply
    n, bytes = n + 1, bytes + #value
    reply[at + 1] = agent
    reply[at + 2] = math.max(count_of(value), 1)
    reply[at + 3] = next_of(agent, value) or ''
    reply[at + 4] = HOLDS and lasting(redis.call('HGET', base .. 'holds', SCOPE_AGENT .. agent)) and 1 or 0
  end
until cursor == '0' or n >= most or bytes >= BYTES
reply[2] = cursor
return reply
