-- bounded: the limits and budgets of the profile of an agent.
-- needs: layout alone

-- own is what is done about them (a table, as a script has only so many names).
local own = { of = {} }

-- own.list are the names in a value of `bounds`, each with what it allows behind it.
function own.list(text)
  local list, at = {}, 1
  while at <= #(text or '') do
    local length = string.match(text, '^%d+', at)
    at = at + #length + 1
    local id = string.match(text, '^[^\t]+', at)
    list[#list + 1] = id
    list[#list + 1] = sub(text, at + #id + 1, at + length - 1)
    at = at + length
  end
  return list
end

-- own.allowed is what one of them allows; '' if there is no such.
function own.allowed(agent, id)
  local list = own.list(redis.call('HGET', base .. 'bounds', agent))
  for i = 1, #list, 2 do
    if list[i] == id then return list[i + 1] end
  end
  return ''
end
