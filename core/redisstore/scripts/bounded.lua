-- bounded: the limits and budgets of the profile of an agent.
-- needs: counting

-- own is what is done about them (a table, as a script has only so many names).
local own, counting = { of = {} }, with_counting(base, now)

-- own.allowed is what one of them allows; '' if there is no such.
function own.allowed(agent, id)
  local list = counting.listed(redis.call('HGET', base .. 'bounds', agent))
  for i = 1, #list, 2 do
    if list[i] == id then return list[i + 1] end
  end
  return ''
end
