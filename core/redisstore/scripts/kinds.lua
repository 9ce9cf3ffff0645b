-- kinds: the counters of all kinds of the partition.
-- KEYS[1] agenda
-- KEYS[2] kinds
-- returns {now, for each kind: its name, live, running, resting, {runs, failures, duration, shortest, longest, lag, longest lag, at,
--          every, cron, activity} or {}, {the last failures}}
local kinds, names = {}, {}
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local what, name = sub(all[i], 1, 1), sub(all[i], 2)
  if not kinds[name] and string.find('lrzs', what, 1, true) then
    kinds[name] = { l = 0, r = 0, z = 0, s = {} }
    names[#names + 1] = name
  end
  if not kinds[name] then -- not what we wrote
  elseif what == 's' then
    local s, right = tally_of(all[i + 1])
    for k = 1, right and #s or 0 do kinds[name].s[k] = string.format('%.0f', s[k]) end
  else
    kinds[name][what] = tonumber(all[i + 1]) or 0
  end
end
local reply = { now }
for _, name in ipairs(names) do
  local k, at = kinds[name], #reply
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4], reply[at + 5] = name, k.l, k.r, k.z, k.s
  reply[at + 6] = redis.call('LRANGE', base .. 'failures:' .. name, 0, -1)
end
return reply
