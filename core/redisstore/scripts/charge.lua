-- charge: charge budgets what runs have used while they go on.
-- needs: look counting bounded spend
-- KEYS[1] agenda
-- KEYS[2] claims
-- ARGV[1..] 4 for each run: fence, index in its claim, agent:id, what it has used so far: unit=amount in lines
-- returns {now, {place of the run, bucket, end of its period of each budget that is used up by now}, {place of each run of which a budget is used up}}

local crossed, over = {}, {}
redis.call('HDEL', base .. 'charged', '') -- the first write must be one that is allowed when memory is full
for i = 1, #ARGV, 4 do
  local fence, index, ref, place = ARGV[i], tonumber(ARGV[i + 1]) + 1, ARGV[i + 2], (i + 3) / 4
  local found = redis.call('HMGET', KEYS[2], fence, fence .. CLAIM_REFS)
  local marks, refs = found[1], found[2] and cmsgpack.unpack(found[2]) or {}
  local holds = refs[3 * index] and refs[3 * index - 2] .. ':' .. refs[3 * index - 1] == ref
  local buckets = marks and holds and index <= #marks - 16 and byte(marks, index) == byte(RUNNING) and redis.call('HGET', base .. 'uses', ref)
  if buckets and string.find(buckets, '$', 1, true) then
    local before, used, all, is_over = counting.units(redis.call('HGET', base .. 'charged', ref)), counting.units(ARGV[i + 3]), {}, false
    for name in string.gmatch(buckets, '[^\n]+') do
      local id = counting.split(name)
      local unit = string.match(id, '%$([%w_]+)%$%a$')
      local rule = unit and used[unit] and counting.budget(id, own.text(name, id))
      if rule and not rule.spans then -- what spans partitions is charged when the run ends, as its home hears of it then
        local more = math.max(used[unit] - (before[unit] or 0), 0)
        local crosses, ends = spend(name, rule, more)
        own.unreserve_some(ref, name, more)
        if crosses then
          for _, v in ipairs({ place, name, ends }) do crossed[#crossed + 1] = v end
        end
        is_over = is_over or not rule.notify and spent(name) >= rule.amount
        all[unit] = math.max(used[unit], before[unit] or 0)
      end
    end
    local text = {}
    for unit, amount in pairs(all) do text[#text + 1] = unit .. '=' .. string.format('%.0f', amount) end
    table.sort(text)
    if #text > 0 then redis.call('HSET', base .. 'charged', ref, table.concat(text, '\n')) end
    if is_over then over[#over + 1] = place end
  end
end
return { now, crossed, over }
