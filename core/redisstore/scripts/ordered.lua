-- ordered: what orders mean to a claim.
-- needs: look ended holds

-- kept_by is the widest scope because of which a task is not to be claimed now; nil if it is. A task that is to run by an
-- order is kept by later holds only, and one that is to end by none, as nothing of it runs any more.
local function kept_by(agent, id, live, ordered)
  local scope = hold_of(agent, id, live)
  if not scope or not ordered then return scope end
  local found = redis.call('HMGET', base .. 'orders', agent .. ':' .. id, ORDERED .. agent .. ':' .. id)
  local order = byte(found[1] or '')
  if order == byte(ORDER_CANCEL) or order == byte(ORDER_RUN) and not found[2] then return nil end
  if order == byte(ORDER_RUN) then return hold_of(agent, id, live, tonumber(found[2])) end
  return scope
end

-- give_back_replaced gives back those runs of a claim whose tasks were replaced meanwhile: as none of them has begun, they wait
-- as what they were replaced by. It returns the marks of the claim.
local function give_back_replaced(fence, marks, refs)
  if redis.call('EXISTS', base .. 'orders') == 0 then return marks end
  local given = {}
  for i = 1, #refs / 3 do
    local agent, id = refs[3 * i - 2], refs[3 * i - 1]
    local order = byte(marks, i) == byte(RUNNING) and redis.call('HGET', base .. 'orders', agent .. ':' .. id)
    if order and byte(order) == byte(ORDER_REPLACE) then
      local live, member = find(agent, redis.call('HGET', base .. 'agents', agent), id)
      if live then
        take_back(agent, live, id, member, refs[3 * i])
        more(more_running, select(2, parse(live)), -1)
        unuse(agent .. ':' .. id)
        marks = sub(marks, 1, i - 1) .. LOST .. sub(marks, i + 1)
        given[#given + 1] = agent
      end
    end
  end
  if #given == 0 then return marks end
  placed()
  counted()
  count('running', -#given)
  if string.find(sub(marks, 1, -17), RUNNING, 1, true) then
    redis.call('HSET', base .. 'claims', fence, marks)
  else
    close(fence, marks)
  end
  for _, agent in ipairs(given) do free(agent, fence) end
  wake(now)
  return marks
end

-- told_to_end lists which of some tasks are to be cancelled; an order to run is under way once the task is taken anew.
-- rule: orders
local function told_to_end(refs, anew)
  local ended = {}
  if #refs == 0 or redis.call('EXISTS', base .. 'orders') == 0 then return ended end
  for i, order in ipairs(redis.call('HMGET', base .. 'orders', unpack(refs))) do
    if order and byte(order) == byte(ORDER_CANCEL) then
      ended[#ended + 1] = i
      ended[#ended + 1] = sub(order, 2)
    elseif anew and order and byte(order) == byte(ORDER_RUN) then
      redis.call('HSET', base .. 'orders', refs[i], ORDER_TAKEN)
    end
  end
  return ended
end
