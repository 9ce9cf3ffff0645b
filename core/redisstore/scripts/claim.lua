-- claim: take back expired leases and end holds, then lease due tasks, one share for each agent in the agenda's order.
-- needs: look ended holds asked ordered weigh suspects expired unpark counting bounded spend limits turns lanes profiled
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
-- ARGV[6] letters: u to take tasks of level 1 only, s to take one task of an agent, and none while another of its runs, t to tell which are
--         parked;
--         then the largest fence that the caller has seen, 0: none, and behind a ! the stamp of what it needs to be stored, if any
-- ARGV[7] agents that have waited since this or before are passed over, ms; 0: none; behind it | and the last member of that very time, unless all are
-- ARGV[8] permits that the caller brings, lines to look at, and what runs are expected to use: see span.take
-- ARGV[9] notice of a lease that is over, ms, 0: none; then, if they are bounded, a '|' and how many suspects are taken, of each
--         sort, and with how many crashes a task is none any more, 0: with any
-- ARGV[10] number of kinds
-- ARGV[11..] 1 for each kind with a handler: '+' kind; '~' most(5) kind, no more than so many; '-' kind, it is left where it is; and
--            '=' lease ms '|' kind, for each that has another lease than ARGV[4]
-- ARGV[..] 1 for each agent to visit; none: any agent
-- returns {now, next due of these agents or '', next end of a lease or '', fence or '', behind a t if tenants took turns, ? if the stamp is unknown, recovered, parked (or, if asked,
--          {parked, for each: agent, id, why: h held, k no handler, l a limit, b a budget}),
--          {place, opaque of each task that is to be cancelled}, left, passed or '' and behind it minus and what is in `urgent`, if there are no tasks of level 1, {when each agent to visit is due or ''},
--          {agent, profile of each that has one}, {bucket, end of its period of each budget that is used up by now},
--          {buckets that span partitions: see span.told}, suspects that were left, leases that were given notice of, {for each task that was
--          taken back what the nonce of its claim began with}, for each task: agent, live, due, behind an l if it had to wait in line, state or ''}; a repeated claim has '' as the live of a task that has ended or that it gives back

local FIRST = 10 -- arguments in front of the kinds
local ASKS_URGENT = 'u'
local ASKS_SERIAL = 's'
local ASKS_TO_TELL = 't'
local MOST_TOLD = 150 -- fields of tasks that are told at most
local TAKES = '+'
local UNSTAMPED = '?'
local ASKED_FOR = 1000 -- ms
local FORGOTTEN_AFTER = 60000 -- ms
local LINED = 'l' -- in front of the due time of a task that comes out of a line
local TAKES_MOST = '~'
local HOLDS_FOR = '='
local PAGES = 4 -- how many times as much as may be taken is looked at, or parked, at most
local WIDE = 50 -- agents of a page that a picky claim looks at, at least
local DEEP = 16 -- tasks of an agent that a picky claim looks at, at least
local LINES = 8 -- behind limits, and ended holds, that one claim looks at
local ALL = '1' -- ms, since which nobody waits
local LEVELS = { { 1 }, { 2 }, { 1, 2 }, { 3 }, { 1, 3 }, { 2, 3 }, { 1, 2, 3 } } -- those in use, by the mask of an agent

-- 1. What is asked for. kinds says of each kind whether it is taken: true, how many at most, or false. A picky claim may pass over
-- much that is due, so it looks further than others.
local nonce, limit, per_agent, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local raised, letters, after, nkinds = now - tonumber(ARGV[5]), ARGV[6], ARGV[7], tonumber(ARGV[10])
local URGENT, SERIAL = string.find(letters, ASKS_URGENT, 1, true), string.find(letters, ASKS_SERIAL, 1, true)
own.told = string.find(letters, ASKS_TO_TELL, 1, true) and {}
if SERIAL then per_agent = 1 end
local asked = #ARGV > FIRST + nkinds and { unpack(ARGV, FIRST + 1 + nkinds) }
local kinds, taken_kinds, PICKY = {}, {}, URGENT or SERIAL
for i = FIRST + 1, FIRST + nkinds do
  local arg = ARGV[i]
  local how, kind = byte(arg), sub(arg, 2)
  if how == byte(HOLDS_FOR) then
    local for_, of = string.match(kind, '^(%d+)|(.*)$')
    suspect.leases = suspect.leases or {}
    suspect.leases[of] = tonumber(for_)
  else
    if how == byte(TAKES_MOST) then kind = sub(arg, 7) end
    kinds[kind] = how == byte(TAKES) or how == byte(TAKES_MOST) and tonumber(sub(arg, 2, 6))
    if kinds[kind] then taken_kinds[#taken_kinds + 1] = kind end
  end
  PICKY = PICKY or how ~= byte(TAKES)
end

-- 2. What every way through a claim needs: which of the rare things exist at all, and the answer.
-- rule: first-write
redis.call('ZREM', KEYS[6], '') -- the first write must be one that is allowed when memory is full
-- guard: holds-on-redis
local HOLDS, ORDERS = redis.call('EXISTS', base .. 'holds') == 1, redis.call('EXISTS', base .. 'orders') == 1

own.parked = #taken_kinds > 0 and redis.call('EXISTS', KEYS[7]) == 1

local left, passed = 0, ''
local function answer(fence, recovered, parked, tasks, ended)
  local next_due, next_lease = look()
  local dues = {}
  if parked > 0 then wake(now) end
  if own.told and parked > 0 then parked = { parked, unpack(own.told) } end
  if asked then next_due, dues = due_of(asked, taken_kinds) end
  -- What is left of what was parked and may be taken here is put back by the next claim.
  for _, n in ipairs(not asked and own.parked and not stopped() and redis.call('HMGET', KEYS[7], unpack(taken_kinds)) or {}) do
    if n then next_due = math.min(tonumber(next_due) or now, now) end
  end
  local reply = { listened and -now or now, next_due or '', next_lease or '', fence, recovered, parked, ended or {}, left, passed, dues, profiles_of(tasks, 4), crossed, span.told(), suspect.held, suspect.notices, suspect.from }
  for i, t in ipairs(tasks) do reply[16 + i] = t end
  return reply
end

-- later says until when it is in vain to ask again for tasks of level 1, as there are none: when something is due next that is not due now. Of
-- agents with queues that are due, only when their first task of level 1 is.
-- rule: urgent-wakes
own.urgent = math.huge
function own.later()
  if left > 0 or suspect.held > 0 or redis.call('EXISTS', base .. 'open') == 1 then return '' end
  for _, n in ipairs(own.parked and redis.call('HMGET', KEYS[7], unpack(taken_kinds)) or {}) do
    if n then return '' end
  end
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
  local till = string.format('%.0f', math.min(tonumber(first) or math.huge, own.urgent, now + ASKED_FOR))
  redis.call('SET', base .. 'urgent', till, 'PX', FORGOTTEN_AFTER)
  return '-' .. till
end

-- 3. A claim that is sent again, as its answer was lost, gets the tasks that it took and still holds.
-- rule: repeated-nonce
local before = redis.call('HGET', KEYS[5], CLAIM_NONCE .. nonce)
-- guard: nonce
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

own.stamp = string.match(letters, '!(%w+)')
-- rule: stamp
own.unstamped = own.stamp and not string.find(redis.call('HGET', base .. 'counters', 'stamps') or '', own.stamp, 1, true)
-- guard: stamp-on-redis
if own.unstamped then limit = 0 end -- limits, quiet hours and the like may be lost: nothing starts before they are stored again

-- 4. Work of the dead goes back to its place in the queue, with one more crash, or as what it was replaced by; holds end.
expire(tonumber(string.match(ARGV[9], '^%d+')))
PICKY = suspect.asked(ARGV[9]) or PICKY
if ARGV[8] ~= '' then span.take(ARGV[8]) end
count('running', -recovered)
count('recovered', recovered)

local still = HOLDS and stopped()

-- 5. Parked tasks go back too whose kind has a handler here, about as many in all as may be taken and some of each kind, and
-- those that a hold kept which has ended.
-- rule: parked
if not still and limit > 0 and own.parked then
  local there = {}
  for k, n in ipairs(redis.call('HMGET', KEYS[7], unpack(taken_kinds))) do
    if n then there[#there + 1] = taken_kinds[k] end
  end
  for _, kind in ipairs(there) do
    local back, full = put_back(kind, math.max(1, math.floor(limit / #there)))
    if back == 0 and not full then redis.call('HDEL', KEYS[7], kind) end -- nothing is there, whatever the count says
  end
end
local lines, scope = {}, nil -- those with room now, and the first hold that has ended
for _, opened_ in ipairs(not still and limit > 0 and redis.call('ZRANGE', base .. 'open', 0, LINES) or {}) do
  if byte(opened_) == byte(SCOPE_LIMIT) then lines[#lines + 1] = opened_ else scope = scope or opened_ end
end
for name, told in pairs(span.hands) do -- else nobody looks at a line whose time to ask again has not come
  local line = SCOPE_LIMIT .. name
  if told.all > 0 and redis.call('HEXISTS', base .. 'lines', name) == 1 and not redis.call('ZSCORE', base .. 'open', line) then lines[#lines + 1] = line end
end
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
  return answer(own.unstamped and UNSTAMPED or '', recovered, 0, {})
end

-- 6. What becomes of a due task: it is taken, parked, or left where it is.
local tasks, refs, state_refs, gone_agents, parked = {}, {}, {}, {}, 0
local function took(agent, live, id, due, kind, lined)
  suspect.lease = suspect.lease_of(kind, lease) -- that of the first task that is taken: the others have the same
  if suspect.any then suspect.took(agent .. ':' .. id) end
  more(more_running, kind, 1)
  if kinds[kind] ~= true then kinds[kind] = kinds[kind] - 1 end
  if LIMITS then charge(agent, id, live) end
  HOLDS = HOLDS or #crossed > 0 and redis.call('EXISTS', base .. 'holds') == 1 -- a budget that is used up may have paused the next
  tasks[#tasks + 1], tasks[#tasks + 2] = agent, live
  tasks[#tasks + 1] = lined and LINED .. string.format('%.0f', due) or due
  tasks[#tasks + 1] = ''
  refs[#refs + 1], refs[#refs + 2] = agent, id
  refs[#refs + 1] = tonumber(due)
  state_refs[#state_refs + 1] = agent .. ':' .. id
end

-- leaves says what becomes of a due task: true, it is taken; false, it stays; else it is parked, and where: a name, or the bucket
-- that it waits for. `from` is the one that it waited for.
local USUAL = not HOLDS and not PICKY and not LIMITS and not suspect.leases and not suspect.any
-- rule: kinds
local function leaves(agent, id, kind, live, from)
  local take = kinds[kind]
  if take == false then left = left + 1 end
  if take == false or take == 0 or suspect.lease and take and suspect.lease ~= suspect.lease_of(kind, lease) then return false end
  if suspect.stays(agent .. ':' .. id) then return false end
  local scope = HOLDS and kept_by(agent, id, live, ORDERS)
  if scope then return bay(scope) end
  return take and (LIMITS and full(agent, live, from) or true) or kind
end

-- urgent says whether an agent with several tasks has one of level 1 that is due.
local function urgent(agent)
  local due = tonumber(redis.call('ZRANGE', base .. 'queue:1:' .. agent, 0, 0, 'WITHSCORES')[2])
  -- guard: urgent-in-queues
  if due and due > now then own.urgent = math.min(own.urgent, due) end
  return due and due <= now
end

local function step_aside(agent, name, id, due, live)
  local why = 'k'
  if type(name) == 'table' then
    why = name.rule.amount and 'b' or 'l'
    join_line(name, agent, id, live, due)
  else
    if byte(name) == byte(HELD) then why = 'h' end
    park(agent, name, id, due)
  end
  parked = parked + 1
  if own.told and #own.told < MOST_TOLD then
    for _, v in ipairs({ agent, id, why }) do own.told[#own.told + 1] = v end
  end
end

-- 7. An agent with one task gives it; those with more are visited round by round while there is room. An agent whose only
-- task is to be left where it is takes nobody's turn, nor does one without an urgent task if these are wanted; but the
-- search is bounded.
local many, room, turns, got, queued = {}, limit, 0, {}, {}
local in_turn -- where tenants take turns: see lanes
local function call_on(member, agent, score, value, busy)
  local lane = in_turn and in_turn.lane_of[member]
  if SERIAL and value and byte(value) == byte(FEW) then -- where one run of it keeps the others waiting, they wait in queues
    if queued[agent] then return end
    queued[agent] = true
    value = spread(agent, value)
    redis.call('HSET', KEYS[2], agent, value)
    placed()
    score = redis.call('ZSCORE', KEYS[1], agent)
    if not score or tonumber(score) > now then return end
    member = agent
  end
  if busy or SERIAL and got[agent] then -- it is put back when its run ends
    gone_agents[#gone_agents + 1] = agent
    return
  end
  local form = value and byte(value)
  if member ~= agent and form ~= byte(FEW) then -- left behind: it waits elsewhere
    gone_agents[#gone_agents + 1] = member
    return
  end
  local live = form == byte(INLINE) and sub(value, 2) or form == byte(FEW) and first_of(value)
  if member ~= agent then live = redis.call('HGET', KEYS[3], agent .. ':' .. sub(member, #agent + 9)) end
  if form == byte(FEW) and per_agent > 0 and (got[agent] or 0) >= per_agent then return end
  local levels = value and byte(value) == byte(QUEUED) and LEVELS[tonumber(sub(value, 2, 2)) or 0]
  local id, kind = parse(live or '')
  if URGENT and (levels and not urgent(agent) or id and byte(live, 8) ~= byte('1')) then return end
  local take = id and (USUAL and kinds[kind] or leaves(agent, id, kind, live))
  turns = turns + 1
  if levels then
    many[#many + 1] = { name = agent, levels = URGENT and LEVELS[1] or levels, all = levels, got = got[agent] or 0, since = tonumber(score), nth = #many, read = 0, lane = lane }
  elseif not id then -- not what we wrote: it must not stand in the way of others
    gone_agents[#gone_agents + 1] = member
    count('malformed', 1)
  elseif take == true then
    took(agent, live, id, score, kind)
    room, got[agent] = room - 1, (got[agent] or 0) + 1
    gone_agents[#gone_agents + 1] = member
  elseif take then
    step_aside(agent, take, id, score, live)
    gone_agents[#gone_agents + 1] = member
  else
    turns = turns - 1
  end
  if lane and take and not levels then lane.gives = lane.gives - 1 end
end

-- Those that wait in line for a limit come before those that would have to join it.
do
  local function judge(agent, id, live, b)
    local free_ = not SERIAL or not got[agent] and not busy_of({ agent })[1]
    if room <= 0 or URGENT and byte(live, 8) ~= byte('1') or not free_ then return false end
    if per_agent > 0 and (got[agent] or 0) >= per_agent then return false end
    return leaves(agent, id, select(2, parse(live)), live, b)
  end
  local function serve_one(what, agent, id, live, due)
    if what ~= true then return step_aside(agent, what, id, due, live) end
    took(agent, live, id, due, select(2, parse(live)), true)
    room, got[agent] = room - 1, (got[agent] or 0) + 1
  end
  for _, line in ipairs(lines) do serve(line, asked, judge, serve_one, limit) end
end
if LIMITS then emptied() end

local seen, unread = nil, nil -- how long the last agent that was looked at has waited; the first agent that others have left no room
-- own.is_before reports whether an agent has waited longer than another, or as long and comes first.
function own.is_before(a, b) return a.since < b.since or a.since == b.since and a.nth < b.nth end
local kept = 0 -- room for agents with many
do -- the agents that are due, those that have waited longest first, a page at a time; first those of tenants whose turn it is
  local width = PICKY and math.max(limit, WIDE) or limit
  -- rule: longest-waiting-first
  local page_of = pages_of(asked, after, width)
  -- guard: lanes-of-urgent
  if not asked and not URGENT and after == '0' and room > 0 and redis.call('EXISTS', base .. 'tenants') == 1 then
    in_turn = with_lanes().choose(limit, room, width)
    if in_turn then in_turn.lane_of = in_turn.find(in_turn) end
  end
  for page = in_turn and -1 or 0, PAGES - 1 do
    local members, scores = in_turn, in_turn and in_turn.since
    if page >= 0 then members, scores = page_of(page * width) end
    if #members > 0 then
      local agents = {}
      for i, member in ipairs(members) do agents[i] = string.match(member, '^[^:]*') end
      local busy = SERIAL and busy_of(agents) or {}
      for i, value in ipairs(redis.call('HMGET', KEYS[2], unpack(agents))) do
        if turns < limit and room > kept then
          if page < 0 or not (in_turn and (in_turn.lane_of[members[i]] or queued[agents[i]])) then call_on(members[i], agents[i], scores[i], value, busy[i]) end
          seen, own.seen_by = page >= 0 and scores[i] or nil, members[i]
        end
      end
    end
    if page < 0 then kept = in_turn.kept(many) end
    if turns >= limit or room <= kept then
      if page < 0 then in_turn.alone = kept > 0 end
      break
    end
    if page >= 0 and #members < width then
      seen = nil -- all were
      break
    end
  end
end

-- 8. Agents with several tasks: the entries of each that come first are chosen.
do
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

  -- 9. The chosen entries are read.
  -- look_at reads a chosen task. One that is too large for this claim ends the turn of its agent, which keeps its place: what is
  -- behind it must not overtake it.
  local to_take, read = weigher(), 0 -- KiB so far
  local function look_at(agent, ref)
    local live, full, kib = to_take(ref)
    if full then
      agent.full, agent.more = true, false
      if agent.read < read and (not unread or own.is_before(agent, unread)) then unread = agent end
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
        local take = USUAL and kinds[kind] or leaves(agent.name, id, kind, live)
        if take == true then
          took(agent.name, live, id, e.due, kind)
          room, agent.got = room - 1, agent.got + 1
        elseif take then
          step_aside(agent.name, take, id, e.due, live)
        else
          stays, agent.more = true, false
        end
        if take then agent.want = agent.want - 1 end
        if take and agent.lane then agent.lane.gives = agent.lane.gives - 1 end
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

  -- 10. Rounds of visits: each agent gives an equal share of the room that is left, and those that have more give again.
  local visiting = many
  while room > 0 and #visiting > 0 and parked < PAGES * limit do
    -- rule: equal-shares
    local share = math.max(1, math.floor(room / #visiting))
    local chosen, chosen_refs, again, wanted = {}, {}, {}, 0
    if in_turn then in_turn.divide(visiting) end
    for _, agent in ipairs(visiting) do
      local want = math.min(in_turn and in_turn.want(agent) or share, room - wanted)
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
end

-- 11. An agent that was visited is due next when its first task is, behind those that wait already if that is due now.
for _, agent in ipairs(many) do
  local first = agent.first
  for _, level in ipairs(agent.known and {} or agent.all) do
    local s = tonumber(redis.call('ZRANGE', base .. 'queue:' .. level .. ':' .. agent.name, 0, 0, 'WITHSCORES')[2])
    if s and (not first or s < first) then first = s end
  end
  -- rule: next-of-agent
  if not first or SERIAL and agent.got > 0 then
    gone_agents[#gone_agents + 1] = agent.name
  elseif first > now or not URGENT and (agent.got > 0 or not PICKY and not agent.full) then -- else it keeps its turn
    agenda_adds[#agenda_adds + 1] = math.max(first, now)
    agenda_adds[#agenda_adds + 1] = agent.name
  end
end

-- 12. The agenda and the lease.
if #gone_agents > 0 then redis.call('ZREM', KEYS[1], unpack(gone_agents)) end
if #agenda_adds > 0 then redis.call('ZADD', KEYS[1], unpack(agenda_adds)) end
counted()
if in_turn and #refs + parked > 0 then in_turn.commit(in_turn) end
if #refs == 0 then
  local alone = in_turn and in_turn.alone -- nothing is for this caller that has its turn: it goes on by age
  if PICKY and parked == 0 and (seen or unread or alone) then
    -- guard: lanes-passed
    passed = seen or alone and ALL or ''
    local last = unread
    -- The next claim begins with the first agent that this one had no room for, but not with all of this one's again.
    for _, agent in ipairs(unread and many or {}) do
      if own.is_before(agent, unread) and (last == unread or own.is_before(last, agent)) then last = agent end
    end
    if last then passed = string.format('%.0f', last.since) end
    own.passed_by = last and last.name or seen and own.seen_by
  end
  if URGENT and parked == 0 then passed = passed .. own.later() end
  -- guard: passed-within-a-time
  if own.passed_by then passed = passed .. '|' .. own.passed_by end
  return answer('', recovered, parked, {})
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  for i, s in ipairs(redis.call('HMGET', KEYS[4], unpack(state_refs))) do tasks[4 * i] = s or '' end
end
local fence = string.format('%.0f', ticks(1, tonumber(string.match(letters, '%d+'))))
redis.call('HSET', KEYS[5], fence, string.rep(RUNNING, #state_refs) .. nonce, fence .. CLAIM_REFS, cmsgpack.pack(refs), CLAIM_NONCE .. nonce, fence)
redis.call('ZADD', KEYS[6], now + suspect.lease, fence)
if SERIAL then
  local taken = {}
  for i = 1, #refs, 3 do
    taken[#taken + 1] = refs[i]
    taken[#taken + 1] = fence
  end
  redis.call('HSET', base .. 'serial', unpack(taken))
end
count('running', #state_refs)
return answer(in_turn and TURNS .. fence or fence, recovered, parked, tasks, told_to_end(state_refs, true))
