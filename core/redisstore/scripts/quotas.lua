-- quotas: how much of the quotas of some agents is used.
-- needs: quota
-- KEYS[1] agenda
-- ARGV[1..] 1 for each agent: its name
-- returns {now, for each agent that has one: agent, live tasks, those that recur, KiB, tasks submitted within a minute}

quota.read(ARGV)
local reply = { now }
for agent, q in pairs(quota.of) do
  reply[#reply + 1] = agent
  reply[#reply + 1] = count_of(redis.call('HGET', base .. 'agents', agent))
  reply[#reply + 1] = redis.call('HLEN', base .. 'recurs:' .. agent)
  reply[#reply + 1] = tonumber(redis.call('HGET', base .. 'bytes', agent) or 0)
  reply[#reply + 1] = q.submits > 0 and quota.submitted(q) or 0
end
return reply
