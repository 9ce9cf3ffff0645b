-- plainhistory: keep the records of those runs of plainsettle whose agents have others.
-- needs: tasks signals finished

local reached = {}
for i, k in ipairs(histories) do reached[i] = names[k] end
recall(reached)
for _, k in ipairs(histories) do
  local at = runs_at + PER_RUN * (k - 1)
  local id, agent = sub(refs[k], #names[k] + 2), names[k]
  -- rule: records
  remember(agent, id, sub(ARGV[at + 4], -1) .. string.format('%013.0f', now) .. ARGV[at + 5], tonumber(ARGV[3]))
end
remembered(ARGV[4], tonumber(ARGV[3]))
return { listened and -now or now, 1 }
