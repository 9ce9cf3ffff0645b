-- grouped: which group a live task is counted in.
-- needs: layout alone

-- named_in is the group that the body of a task names, as core encodes it: fields of a tag, the number times two plus one for
-- text, and a varint or a length and text. It is only looked at for tasks that a version without `groups` has stored.
local GROUP_FIELD = 8
local function varint(text, at)
  local value, unit = 0, 1
  while true do
    local b = byte(text, at)
    if not b then return nil end
    value, unit, at = value + b % 128 * unit, unit * 128, at + 1
    if b < 128 then return value, at end
  end
end

local function named_in(agent, live)
  local high, low = byte(live, 9, 10)
  local at = 11 + high * 256 + low
  at = at + 1 + byte(live, at)
  high, low = byte(live, at, at + 1)
  at = at + 2 + high * 256 + low
  while at <= #live do
    local tag, from = varint(live, at)
    local n, to = nil, nil
    if tag then n, to = varint(live, from) end
    if not n then return '' end -- not what core writes
    if tag == 2 * GROUP_FIELD + 1 then
      local name = sub(live, to, to + n - 1)
      return agent .. ':' .. string.gsub(name, '[^%w._-]', function(c) return string.format('%%%02X', byte(c)) end)
    end
    at = tag % 2 == 1 and to + n or to
  end
  return ''
end

-- group_of is the group that a live task is counted in, '' for none. What the caller takes for it, as it was some time ago,
-- says at most that it has one.
local function group_of(agent, id, live, said)
  local kept = redis.call('HGET', base .. 'groups', agent .. ':' .. id)
  if kept and sub(kept, 1, 7) == sub(live, 1, 7) then return sub(kept, 8) end
  return said ~= '' and named_in(agent, live) or ''
end
