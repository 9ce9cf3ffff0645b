-- kinds: a page of the counters of kinds of the partition.
-- needs: layout alone
-- KEYS[1] agenda
-- KEYS[2] kinds
-- ARGV[1] cursor
-- returns {now, the next cursor, for each counter: l live, r running, z resting or s of runs; its kind; how many, or {runs, failures,
--          duration, shortest, longest, lag, longest lag, at, every, cron, activity} or {}; the last failures with s, else {}}

local FIELDS = 250 -- counters of a page
local BYTES = 65536 -- of a page
local STEP = 10 -- how many are looked at together
local reply, cursor, n, bytes = { now, '0' }, ARGV[1], 0, 0
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', STEP)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    local what, name = sub(page[2][i], 1, 1), sub(page[2][i], 2)
    local value, failures = nil, {}
    n = n + 1
    if what == COUNT_RUNS then
      local s, right = tally_of(page[2][i + 1])
      value, failures = {}, redis.call('LRANGE', base .. 'failures:' .. name, 0, -1)
      for k = 1, right and #s or 0 do value[k] = string.format('%.0f', s[k]) end
      for _, failure in ipairs(failures) do bytes = bytes + #failure end
    elseif what == COUNT_LIVE or what == COUNT_RUNNING or what == COUNT_RESTING then
      value = tonumber(page[2][i + 1]) or 0
    end
    if value then -- else it is not what we wrote
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = what, name, value, failures
    end
  end
until cursor == '0' or n >= FIELDS or bytes >= BYTES
reply[2] = cursor
return reply
