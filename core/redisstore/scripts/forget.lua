-- forget: drop what an agent leaves behind besides tasks: the counts of groups that have no live task, and the ids of tasks whose records
--   were dropped, a page of those of all agents at a time.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] gone
-- KEYS[3] groups
-- ARGV[1] agent
-- ARGV[2] where the page of ids begins, 0 first
-- ARGV[3..] 1 for each group: its key
-- returns {now, where the next page begins or 0}

local PAGE = 500
local agent, cursor = ARGV[1], ARGV[2]
for i = 3, #ARGV do
  if redis.call('HEXISTS', KEYS[3], GROUP_LIVE .. ARGV[i]) == 0 then redis.call('DEL', base .. 'group:' .. ARGV[i]) end
end
local page = redis.call('ZSCAN', KEYS[2], cursor, 'MATCH', agent .. ':*', 'COUNT', PAGE)
local refs = {}
for i = 1, #page[2], 2 do refs[#refs + 1] = page[2][i] end
if #refs > 0 then redis.call('ZREM', KEYS[2], unpack(refs)) end
return { now, page[1] }
