-- known: what is known of tasks that have ended, beside the inline records.
-- needs: layout alone

-- end_of is a record without what core keeps, for a task whose record was dropped before its time: from its score in gone.
-- It is nil once nothing is known of the task.
-- rule: id-was-dropped
local function end_of(score, retention)
  score = tonumber(score or nil)
  if not score then return nil end
  local at, verb = math.floor(score / 4), score % 4 + 1
  if at <= now - math.min(KNOWN, retention) then return nil end
  return sub('cfx', verb, verb) .. string.format('%013.0f', at)
end

-- recorded is the record of a task; kept is the agent's value in finished.
-- rule: id-has-ended
local function recorded(agent, kept, id)
  if kept == HISTORY then return redis.call('HGET', base .. 'history:' .. agent, id) end
  if kept then
    local other, record = outline(kept)
    return other == id and record
  end
end

-- unrecord takes a record away. In a history that has several its place in the index is passed over when its turn comes.
local function unrecord(agent, kept, id, record)
  if byte(record) == byte(FAILED) then redis.call('ZREM', base .. 'failed', agent .. ':' .. id) end
  if kept ~= HISTORY then return redis.call('HDEL', base .. 'finished', agent) end
  redis.call('HDEL', base .. 'history:' .. agent, id)
  local line = class_of(record) .. agent
  weigh(line, -weight(#record - 14))
  if redis.call('EXISTS', base .. line) == 1 then redis.call('HINCRBY', base .. 'stale', line, 1) end
end
