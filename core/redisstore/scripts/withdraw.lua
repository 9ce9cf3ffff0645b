-- withdraw: what was claimed ahead of its time is given back where a command comes in between.
-- needs: layout alone

-- withdraw asks for what was claimed ahead of its time, as a command may be about it. It returns until when such tasks begin; 0 if all
-- have by now.
local function withdraw()
  local at = tonumber(redis.call('HGET', base .. 'counters', 'ahead') or 0)
  if at <= now then return 0 end
  wake(2) -- for a time that nothing is due at
  return at
end
