-- claim: take back expired leases and end holds, then lease due tasks, one share for each agent in the agenda's order.
-- needs: look holds asked ordered weigh expired unpark
-- KEYS[1] agenda
-- KEYS[2] agents
-- KEYS[3] tasks
-- KEYS[4] state
-- KEYS[5] claims
-- KEYS[6] leases
-- KEYS[7] parked
-- ARGV[1] nonce, 16 bytes: the same nonce gets the same tasks
-- ARGV[2] most tasks
-- ARGV[3] most tasks of one agent, 0: as many as there is room for
-- ARGV[4] lease, ms
-- ARGV[5] a task that is overdue by this, ms, counts as level 1
-- ARGV[6] letters: u to take tasks of level 1 only, s to take one task of an agent, and none while another of its runs;
--         then the largest fence that the caller has seen, 0: none
-- ARGV[7] agents that have waited since this or before are passed over, ms; 0: none
-- ARGV[8] number of kinds
-- ARGV[9..] 1 for each kind with a handler: '+' kind; '~' most(5) kind, no more than so many; '-' kind, it is left where it is
-- ARGV[..] 1 for each agent to visit; none: any agent
-- returns {now, next due of these agents or '', next end of a lease or '', fence or '', recovered, parked,
--          {place, opaque of each task that is to be cancelled}, left, passed or '', {when each agent to visit is due or ''},
--          for each task: agent, live, due, state or ''}; a repeated claim has '' as the live of a task that has ended or
--          that it gives back

local FIRST = 8 -- arguments in front of the kinds
local ASKS_URGENT = 'u'
local ASKS_SERIAL = 's'
local TAKES = '+'
local TAKES_MOST = '~'
local PAGES = 4 -- how many times as much as may be taken is looked at, or parked, at most
local WIDE = 50 -- agents of a page that a picky claim looks at, at least
local DEEP = 16 -- tasks of an agent that a picky claim looks at, at least
local EXPIRED = 2 -- leases and holds that one claim ends, at most: a claim has to stay short when many processes died at once
local LEVELS = { { 1 }, { 2 }, { 1, 2 }, { 3 }, { 1, 3 }, { 2, 3 }, { 1, 2, 3 } } -- those in use, by the mask of an agent

-- 1. What is asked for. kinds says of each kind whether it is taken: true, how many at most, or false. A picky claim may pass over
-- much that is due, so it looks further than others.
local nonce, limit, per_agent, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local raised, letters, after, nkinds = now - tonumber(ARGV[5]), ARGV[6], ARGV[7], tonumber(ARGV[8])
local URGENT, SERIAL = string.find(letters, ASKS_URGENT, 1, true), string.find(letters, ASKS_SERIAL, 1, true)
if SERIAL then per_agent = 1 end
local asked = #ARGV > FIRST + nkinds and { unpack(ARGV, FIRST + 1 + nkinds) }
local kinds, taken_kinds, PICKY = {}, {}, URGENT or SERIAL
for i = FIRST + 1, FIRST + nkinds do
  local arg = ARGV[i]
  local how, kind = byte(arg), sub(arg, 2)
  if how == byte(TAKES_MOST) then kind = sub(arg, 7) end
  kinds[kind] = how == byte(TAKES) or how == byte(TAKES_MOST) and tonumber(sub(arg, 2, 6))
  if kinds[kind] then taken_kinds[#taken_kinds + 1] = kind end
  PICKY = PICKY or how ~= byte(TAKES)
end

-- 2. What every way through a claim needs: which of the rare things exist at all, and the answer.
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full
local HOLDS, ORDERS = redis.call('EXISTS', base .. 'holds') == 1, redis.call('EXISTS', base .. 'orders') == 1

-- told_to_end lists which of some tasks are to be cancelled; an order to run is under way once the task is taken anew.
local function told_to_end(refs, anew)
  local ended = {}
  if not ORDERS or #refs == 0 then return ended end
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

local left, passed = 0, ''
local function answer(fence, recovered, parked, tasks, ended)
  local next_due, next_lease = look()
  local dues = {}
  if parked > 0 then wake(now) end
  if asked then next_due, dues = due_of(asked, taken_kinds) end
  local reply = { now, next_due or '', next_lease or '', fence, recovered, parked, ended or {}, left, passed, dues }
  for i, t in ipairs(tasks) do reply[10 + i] = t end
  return reply
end

-- 3. A claim that is sent again, as its answer was lost, gets the tasks that it took and still holds.
local before = redis.call('HGET', KEYS[5], CLAIM_NONCE .. nonce)
if before then
  local found = redis.call('HMGET', KEYS[5], before, before .. CLAIM_REFS)
  local refs, tasks, names = found[2] and cmsgpack.unpack(found[2]) or {}, {}, {}
  local marks = give_back_replaced(before, found[1], refs)
  for i = 1, #refs / 3 do
    local agent, id = refs[3 * i - 2], refs[3 * i - 1]
    local live = byte(marks, i) == byte(RUNNING) and find(agent, redis.call('HGET', KEYS[2], agent), id)
    names[i] = agent .. ':' .. id
    tasks[#tasks + 1] = agent
    tasks[#tasks + 1] = live or ''
    tasks[#tasks + 1] = refs[3 * i]
    tasks[#tasks + 1] = redis.call('HGET', KEYS[4], agent .. ':' .. id) or ''
  end
  return answer(before, 0, 0, tasks, told_to_end(names, false))
end

-- 4. Work of the dead goes back to its place in the queue, with one more crash, or as what it was replaced by; holds end.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', now, 'LIMIT', 0, EXPIRED)) do
  if byte(member) == byte(HELD) then unhold(sub(member, 2)) else recover(member) end
end
count('running', -recovered)
count('recovered', recovered)

local still = HOLDS and stopped()

-- 5. Parked tasks go back too whose kind has a handler here, about as many in all as may be taken and some of each kind, and
-- those that a hold kept which has ended.
if not still and limit > 0 and #taken_kinds > 0 and redis.call('EXISTS', KEYS[7]) == 1 then
  local there = {}
  for k, n in ipairs(redis.call('HMGET', KEYS[7], unpack(taken_kinds))) do
    if n then there[#there + 1] = taken_kinds[k] end
  end
  for _, kind in ipairs(there) do
    local back, full = put_back(kind, math.max(1, math.floor(limit / #there)))
    if back == 0 and not full then redis.call('HDEL', KEYS[7], kind) end -- nothing is there, whatever the count says
  end
end
local scope = not still and limit > 0 and redis.call('ZRANGE', base .. 'open', 0, 0)[1]
if scope then
  put_back(bay(scope), limit)
  if redis.call('EXISTS', base .. 'parked:' .. bay(scope)) == 0 then redis.call('ZREM', base .. 'open', scope) end
end
placed()
if #ended_serial > 0 and redis.call('EXISTS', base .. 'serial') == 1 then
  for _, e in ipairs(ended_serial) do free(e[1], e[2]) end
end
if limit == 0 or still then
  counted()
  return answer('', recovered, 0, {})
end

-- 6. The agents that are due, those that have waited longest first, a page at a time.
local named = nil
if asked then
  named = {}
  for i, s in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(asked))) do
    local score = tonumber(s or 'inf')
    if score <= now and score > tonumber(after) then named[#named + 1] = { asked[i], score } end
  end
  table.sort(named, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
end

local width = PICKY and math.max(limit, WIDE) or limit
local function page_of(from)
  local agents, scores = {}, {}
  if named then
    for i = from + 1, math.min(#named, from + width) do agents[i - from], scores[i - from] = named[i][1], named[i][2] end
  else
    local first = after == '0' and '-inf' or '(' .. after
    local due = redis.call('ZRANGEBYSCORE', KEYS[1], first, now, 'WITHSCORES', 'LIMIT', from, width)
    for i = 1, #due, 2 do agents[(i + 1) / 2], scores[(i + 1) / 2] = due[i], due[i + 1] end
  end
  return agents, scores
end

-- 7. What becomes of a due task: it is taken, parked, or left where it is.
local tasks, refs, state_refs, gone_agents, parked = {}, {}, {}, {}, 0
local function took(agent, live, id, due, kind)
  more(more_running, kind, 1)
  if kinds[kind] ~= true then kinds[kind] = kinds[kind] - 1 end
  tasks[#tasks + 1], tasks[#tasks + 2] = agent, live
  tasks[#tasks + 1] = due
  tasks[#tasks + 1] = ''
  refs[#refs + 1], refs[#refs + 2] = agent, id
  refs[#refs + 1] = tonumber(due)
  state_refs[#state_refs + 1] = agent .. ':' .. id
end

-- leaves says what becomes of a due task: true, it is taken; false, it stays; else it is parked, and where.
local function leaves(agent, id, kind, live)
  local take = kinds[kind]
  if take == false then left = left + 1 end
  if take == false or take == 0 then return false end
  local scope = HOLDS and kept_by(agent, id, live, ORDERS)
  if scope then return bay(scope) end
  return take and true or kind
end

-- urgent says whether an agent with several tasks has one of level 1 that is due.
local function urgent(agent)
  local due = redis.call('ZRANGE', base .. 'queue:1:' .. agent, 0, 0, 'WITHSCORES')[2]
  return due and tonumber(due) <= now
end

local function step_aside(agent, name, id, due)
  park(agent, name, id, due)
  parked = parked + 1
end

-- 8. An agent with one task gives it; those with more are visited round by round while there is room. An agent whose only
-- task is to be left where it is takes nobody's turn, nor does one without an urgent task if these are wanted; but the
-- search is bounded.
local many, room, turns = {}, limit, 0
local function call_on(agent, score, value, busy)
  if busy then -- it is put back when its run ends
    gone_agents[#gone_agents + 1] = agent
    return
  end
  local live = value and byte(value) == byte(INLINE) and sub(value, 2)
  local levels = value and byte(value) == byte(QUEUED) and LEVELS[tonumber(sub(value, 2, 2)) or 0]
  local id, kind = parse(live or '')
  if URGENT and (levels and not urgent(agent) or id and byte(live, 8) ~= byte('1')) then return end
  local take = id and (not HOLDS and not PICKY and kinds[kind] or leaves(agent, id, kind, live))
  turns = turns + 1
  if levels then
    many[#many + 1] = { name = agent, levels = URGENT and LEVELS[1] or levels, all = levels, got = 0, since = tonumber(score), read = 0 }
  elseif not id then -- not what we wrote: it must not stand in the way of others
    gone_agents[#gone_agents + 1] = agent
    count('malformed', 1)
  elseif take == true then
    took(agent, live, id, score, kind)
    room = room - 1
    gone_agents[#gone_agents + 1] = agent
  elseif take then
    step_aside(agent, take, id, score)
    gone_agents[#gone_agents + 1] = agent
  else
    turns = turns - 1
  end
end

local seen = nil -- how long the last agent that was looked at has waited
for page = 0, PAGES - 1 do
  local agents, scores = page_of(page * width)
  if #agents > 0 then
    local busy = SERIAL and busy_of(agents) or {}
    for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(agents))) do
      if turns < limit then
        call_on(agents[i], scores[i], value, busy[i])
        seen = scores[i]
      end
    end
  end
  if turns >= limit then break end
  if #agents < width then
    seen = nil -- all were
    break
  end
end

-- 9. Agents with several tasks: the entries of each that come first are chosen.
-- due_entries are the first due entries of an agent, at least as many as are wanted, in the order in which they are to run.
local function due_entries(agent, want)
  local found, deep = {}, PICKY and math.max(want, DEEP) or want
  agent.first = nil -- when the next one behind these is due, if that is known
  for _, level in ipairs(agent.levels) do
    local key = base .. 'queue:' .. level .. ':' .. agent.name
    local entries = redis.call('ZRANGE', key, 0, deep, 'WITHSCORES')
    for i = 1, #entries, 2 do
      local due = tonumber(entries[i + 1])
      if due > now or i > 2 * deep then
        agent.first = due
        break
      end
      found[#found + 1] = { agent = agent, key = key, member = entries[i], due = due, level = due <= raised and 1 or level }
    end
  end
  agent.known = #agent.all == 1
  if #agent.levels > 1 then
    table.sort(found, function(a, b)
      if a.level ~= b.level then return a.level < b.level end
      if a.due ~= b.due then return a.due < b.due end
      return a.member < b.member
    end)
  end
  return found
end

-- 10. The chosen entries are read.
-- look_at reads a chosen task. One that is too large for this claim ends the turn of its agent, which keeps its place: what is
-- behind it must not overtake it.
local to_take, read, unread = weigher(), 0, nil -- KiB so far; since when the first agent waits that others have left no room
local function look_at(agent, ref)
  local live, full, kib = to_take(ref)
  if full then
    agent.full, agent.more = true, false
    if agent.read < read then unread = math.min(unread or agent.since, agent.since) end
    return nil
  end
  read, agent.read = read + (kib or 0), agent.read + (kib or 0)
  return live
end

-- visit looks at the chosen entries: they are taken while their agent is to give more, parked, or left where they are.
local function visit(chosen, chosen_refs)
  local gone, lives = {}, not LARGE and redis.call('HMGET', KEYS[3], unpack(chosen_refs))
  for i, e in ipairs(chosen) do
    local agent, live, stays = e.agent, nil, false
    if lives then
      live = lives[i]
    elseif agent.want > 0 and not agent.full then
      live = look_at(agent, chosen_refs[i])
    end
    local id, kind = parse(live or '')
    if agent.want == 0 or agent.full then -- it was chosen in case that others before it are left
      stays = true
    elseif not id then
      count('malformed', 1)
    else
      local take = not HOLDS and not PICKY and kinds[kind] or leaves(agent.name, id, kind, live)
      if take == true then
        took(agent.name, live, id, e.due, kind)
        room, agent.got = room - 1, agent.got + 1
      elseif take then
        step_aside(agent.name, take, id, e.due)
      else
        stays, agent.more = true, false
      end
      if take then agent.want = agent.want - 1 end
    end
    if stays then
      agent.known = false
    else
      gone[e.key] = gone[e.key] or {}
      table.insert(gone[e.key], e.member)
    end
  end
  for key, members in pairs(gone) do redis.call('ZREM', key, unpack(members)) end
end

-- 11. Rounds of visits: each agent gives an equal share of the room that is left, and those that have more give again.
local visiting = many
while room > 0 and #visiting > 0 and parked < PAGES * limit do
  local share = math.max(1, math.floor(room / #visiting))
  local chosen, chosen_refs, again, wanted = {}, {}, {}, 0
  for _, agent in ipairs(visiting) do
    local want = math.min(share, room - wanted)
    if per_agent > 0 then want = math.min(want, per_agent - agent.got) end
    local found = want > 0 and due_entries(agent, want) or {}
    local look_at = PICKY and #found or math.min(want, #found)
    for i = 1, look_at do
      chosen[#chosen + 1] = found[i]
      chosen_refs[#chosen_refs + 1] = agent.name .. ':' .. sub(found[i].member, 8)
    end
    agent.want, agent.more = math.max(want, 0), want > 0 and #found >= want
    wanted = wanted + math.min(agent.want, look_at)
  end
  if #chosen == 0 then break end
  visit(chosen, chosen_refs)
  for _, agent in ipairs(visiting) do
    if agent.more then again[#again + 1] = agent end
  end
  visiting = again
end

-- 12. An agent that was visited is due next when its first task is, behind those that wait already if that is due now.
for _, agent in ipairs(many) do
  local first = agent.first
  for _, level in ipairs(agent.known and {} or agent.all) do
    local s = tonumber(redis.call('ZRANGE', base .. 'queue:' .. level .. ':' .. agent.name, 0, 0, 'WITHSCORES')[2])
    if s and (not first or s < first) then first = s end
  end
  if not first or SERIAL and agent.got > 0 then
    gone_agents[#gone_agents + 1] = agent.name
  elseif first > now or not URGENT and (agent.got > 0 or not PICKY and not agent.full) then -- else it keeps its turn
    agenda_adds[#agenda_adds + 1] = math.max(first, now)
    agenda_adds[#agenda_adds + 1] = agent.name
  end
end

-- 13. The agenda and the lease.
if #gone_agents > 0 then redis.call('ZREM', KEYS[1], unpack(gone_agents)) end
if #agenda_adds > 0 then redis.call('ZADD', KEYS[1], unpack(agenda_adds)) end
counted()
if #refs == 0 then
  if PICKY and parked == 0 and (seen or unread) then
    passed = seen or ''
    -- The next claim begins with the first agent that this one had no room for, but not with all of this one's again.
    if unread then passed = string.format('%.0f', unread > many[1].since and unread - 1 or unread) end
  end
  return answer('', recovered, parked, {})
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  for i, s in ipairs(redis.call('HMGET', KEYS[4], unpack(state_refs))) do tasks[4 * i] = s or '' end
end
local fence = string.format('%.0f', ticks(1, tonumber(string.match(letters, '%d+'))))
redis.call('HSET', KEYS[5], fence, string.rep(RUNNING, #state_refs) .. nonce, fence .. CLAIM_REFS, cmsgpack.pack(refs), CLAIM_NONCE .. nonce, fence)
redis.call('ZADD', KEYS[6], now + lease, fence)
if SERIAL then
  local taken = {}
  for i = 1, #refs, 3 do
    taken[#taken + 1] = refs[i]
    taken[#taken + 1] = fence
  end
  redis.call('HSET', base .. 'serial', unpack(taken))
end
count('running', #state_refs)
return answer(fence, recovered, parked, tasks, told_to_end(state_refs, true))
