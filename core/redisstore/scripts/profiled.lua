-- profiled: the profiles of the agents that a call is about.
-- needs: layout alone

-- profiles_of lists those of some agents that have a profile, each once and with it; names has one at every `step`-th place. False if the
-- partition has none, unless the caller knows that it has some.
-- rule: profiles
local function profiles_of(names, step, some)
  if #names == 0 or not some and redis.call('EXISTS', base .. 'profiles') == 0 then return false end
  local found, seen_ = {}, {}
  for i = 1, #names, step do
    local agent = names[i]
    local profile = not seen_[agent] and redis.call('HGET', base .. 'profiles', agent)
    seen_[agent] = true
    if profile then found[#found + 1], found[#found + 2] = agent, profile end
  end
  return found
end
