-- layout: how one partition is laid out. It is put in front of every script, so that each part is spelt once; what only
-- some need is in look.lua, holds.lua, finished.lua and the like, as each call pays for all that stands in front.
--
--   agents    HASH agent -> 'S' live      an agent with one live task holds it here, whole, unless it is long: then it is an 'F' agent without
--                                         a first one, or an 'M' agent if it is large, so that no step has to read what it only looks at
--                        -> 'F' level(1) n(1) #first(2) first, for each of the others seq(7) #id(2) id
--                                         an agent with few live tasks, n of them, all of one level and none large: the one that it
--                                         had alone, if it is live still and was not long, and the names of the others
--                        -> 'M' mask n    an agent with n live tasks: mask has a bit for each level in use
--   tasks     HASH agent:id -> live       the live tasks of 'M' agents, and of 'F' agents but the first
--   queue:L:A ZSET seq id, by due time    the waiting tasks of 'M' agent A at level L
--   agenda    ZSET agent                  when an 'M' agent is next looked at: its earliest due time, or the time of the
--                                         last visit if it had more due then (round-robin); when the only or the first task of
--                                         another one is due
--                  agent:seq id           when one of the others of an 'F' agent is
--   live = seq(7) level(1) #id(2) id #kind(1) kind #key(2) key body; seq orders ties and holds the time of submit
--   state     HASH agent:id -> crashes(1) opaque; between them may stand SINCE 6(1) ms(6): when the task last changed otherwise than by its submit or its
--             claim; or SINCE 19(1) ms(6) fence(7) number(6): the same, and which of the states that the run of this fence has sent it is. It is
--             written as core writes a text of a number that core has no use for, so that a version without it passes over it
--   claims    HASH fence -> a mark for each task, then the nonce(16); fence 'r' -> agent, id, due of each task
--                  'n' nonce -> fence
--   leases    ZSET fence, by the end of its lease; '@' scope, by the end of its hold
--   serial    HASH agent -> fence of the claim that holds the one task of it that may run now; what else it has waits
--                  outside the agenda
--   ended     LIST of the fences that ended last: their marks answer a settle that is sent twice
--   finished  HASH agent -> #id(2) id record, or '*': the records are in history:A (HASH id -> record)
--             record = status(1) finished ms(13) opaque
--   ends:A    LIST of the ends(6) id of history:A that completed or were cancelled, newest first: which are the oldest
--   dead:A    LIST of those that failed. Both are there only once a history has more than a few records, so that no step
--             has to look at all of a long one
--   stale     HASH 'ends:' A, 'dead:' A -> how many there have no record any more; 'scan:' A -> how far a sweep has come
--   bytes     HASH A -> KiB of the live tasks of 'M' agent A whose bodies have 4 KiB or more; 'ends:' A, 'dead:' A -> of the
--             records there that have
--   failed    ZSET agent:id, by when it ended, ms: those that failed; one that is there no more, or ended later, is passed over
--   gone      ZSET agent:id, by when it ended * 4 + its verb: tasks whose record was dropped before its time. Their ids
--             stay known for KNOWN ms
--   orders    HASH agent:id -> what becomes of a task when its run ends: 'x' opaque, cancelled; 'r' due(13) state,
--             replaced; 'q', due once more. 'n' of a task that waits: it is taken though it is held, and has 'h' while it
--             runs, so that it is 'n' again if the run is given back or dies. '@' agent:id -> when 'n' was ordered, ms:
--             holds that began later hold the task all the same
--   holds     HASH scope -> until(13) since(13) opaque; scope = '*', k:kind, a:agent, s:key or t:agent:id
--   open      ZSET scope, by when its hold ended: what is parked under it is being put back
--   parked    HASH kind -> n, '@' -> n that are held; parked:K, parked:@scope, parked:@t (all t:) ZSET agent:id, by due
--   suspects  HASH agent:id -> fence of its last run, which died with its process, and a * once somebody has claimed it since; '' if the
--                  process has shown that it lives, and earlier ones have not. Of tasks with crashes alone
--   notices   ZSET fence of a lease that a claim has found over, 'l' fence of one whose process has said that it leaves; by when, ms
--   pulse     HASH agent:id of an activity task -> floor|reason|first|from|to|last: not due before floor; the first touch
--             that the booked run is for, 00 while it rests, 0 if its rest is not counted; the first and last touch
--             while it runs; the last touch, which may be missing, and with it its |
--   kinds     HASH 'l' kind, 'r' kind, 'z' kind -> live, running, resting; 's' kind -> counters of runs (msgpack)
--   failures:K LIST at(13) opaque, newest first
--   groups    HASH agent:id -> seq(7) A:G of a task that has a group, or had one; '@' A:G of each group with live tasks -> 1
--   group:A:G HASH of counts, and when it is forgotten once nothing in it is live; counters HASH
--   recount:R HASH of what a round of an audit has counted; for some minutes: see recount.lua
--   answers   HASH caller -> nonce(8) answer (msgpack), of the last call of each that changed something: see answers.lua
--   awaits    HASH agent:id -> key of the signal that a task waits for
--   awaits:A:K HASH id -> 'w' fence, or 'a' fence of one that wants an approval, or 't' what it was told, of the tasks of A that wait for K
--   signal:A:K STRING until(13) 'a' if it is an approval, else 'w', and what was said that nobody has waited for yet; for so long
--   sent:A:M  STRING until, ms: the message M has sent its signal to A; for so long
--   alarms    ZSET time, ms; of the first partition only: the wake-ups that a clock outside has confirmed
--   owed      ZSET until(13) | tag, by its time, ms: those that none has, and until when the process with that tag may still set it;
--                  '' has when one was confirmed last; of the first partition only
--   counters has 'stamps' too: those of the definitions that are stored, oldest first, with a space between: see stamp.lua
--                  and 'ahead': until when tasks begin that were claimed before their time, and 'ordered': when a task was last told to run that was held, ms; each hold begins later than those before it
--   processes HASH tag -> until(13) opaque; of the first partition only: what processes say of themselves
--   receipts  HASH message -> until(13) state(1) delivery(16) opaque: messages that senders may deliver again; of the first partition only
--   received  ZSET message, by until, ms
--   recent:N  HASH what kind -> runs of slot N of 5 minutes, for a day; what = r all, f failed, l step(2) claimed so late; d process -> runs
--                  that were taken back of it, as it had died; '@' process -> number of
--                  its last tally; w kind -> tasks that waited, u budget -> thousandths of its amount that were used, both as measured last; of the first partition only
--   recent:hN HASH the same of hour N, for 8 days, without the processes
--   seal      STRING secret that the ids of events are sealed with for those who may not see all of them; of the first partition only
--   limits    HASH kind|key|each -> runs|starts|per|burst: at most so many runs at once, and starts in so many ms, 0 for any; kind and
--             key may be '', a key may end with *; each is 'a' or 'k' if each agent or each key is limited by itself. A bucket is
--             what is counted together: the name of a limit, '|', and the agent or the key where each counts by itself. Behind a
--             limit that adapts is '|a'. A budget is kind|key|each$unit$period -> amount|then|clock|zone|opaque: each may be 't' too, then
--             each task counts by itself; period is h, d or m, then h, p or n; amounts are in millionths; the clock is how far local
--             time is ahead, ms, then pairs of when that changes, ms, and to what; opaque is what a pause of it says
--   periods   ZSET bucket of a budget, by the end of its period, ms
--   spent     HASH bucket of a budget -> what it has used in that, in millionths
--   usual     HASH kind|unit -> what the last runs of a kind have used of a unit that a budget bounds, in millionths, oldest first, with a comma between
--   reserved  HASH bucket of a budget of such a unit -> what is kept for its runs under way, in millionths|how many of them are the first of their kind
--   reserves  HASH agent:id -> what is kept for its run: a line for each bucket, amount or ?, a space and its name
--   charged   HASH agent:id -> what its run was charged while it goes on: unit=amount in lines, in millionths
--   learned   HASH bucket of a limit that adapts -> allow|gap|since|served|till|probe|heard: see learn
--             Of several partitions each has all limits. Behind one that spans them is 's' (the letter of a budget is a capital): a bucket of it
--             has its home in the partition that its name belongs to, where its name begins with '^' in flight, rates, learned, spent and periods
--   granted   HASH bucket that spans partitions -> number of the last permit that this one has got|when, ms|number before the first that its home knows of|how many since then were not used; '?' -> cursor
--   permits   HASH bucket|partition -> number of its last permit|of its last one given back|how many it waits for|when it asked, ms|when it was heard of,
--             ms|what it was given last|by which nonce; '^^' bucket|partition -> what it has used in the period that ends then, amount|end; '?' bucket -> when it was looked for silent
--             partitions, '?' -> cursor; of homes only
--   asks:B    ZSET partition that waits for a permit of bucket B, by its turn; of homes only
--   uses      HASH agent:id -> the buckets that a run counts in, a line each
--   flight    HASH bucket -> runs that count in it
--   rates     ZSET bucket, by when it would be empty again, ms, if each start took per / starts of the time
--   lined     HASH agent:id -> bucket of a task that waits for room there; it is parked at '@l:' agent
--   lines     HASH bucket -> how many wait; '@l:' bucket is in leases with when there is room for the next start, and 'l:' bucket in
--             open once there may be
--   line:B    ZSET agent, by its turn; line:B:A ZSET id of those of agent A, by due time, a level counts as a minute
--   profiles  HASH agent -> opaque; the agent need not have tasks
--   bounds    HASH agent -> limits and budgets of its profile, each as in limits: a length, ':', and of that length its name, a tab and what it allows; in
--             place of each they have an 'o', and their buckets are named after the agent
--   quotas    HASH agent -> mark|live|recurring|bytes|submits: what the quota of its profile allows, each 0 for any number
--   recurs:A  HASH id -> '' of each live task of A that recurs, while its quota bounds them
--   paced     HASH agent -> span:n,span:n: how many tasks were submitted in spans of 5 s, while its quota bounds them; until a minute is over
--   tenants   HASH agent -> tenant that its profile names
--   lane:T    ZSET members of the agenda whose agents are of tenant T, or of none: '', by the same times; of what was due when claims last had to
--                  choose. One that is not in the agenda, or at another time, is passed over
--   lanes     ZSET tenant with such members, by its last turn
--   visits    HASH 'n' -> claims that chose; 't' tenant -> its last turn: claim * 1000000 + place
--   laned     HASH '' -> due time, a space and member of the last of the agenda that was put into a lane; member -> '' of each that came into the
--                  agenda in front of that later. These four are there while more is due than claims may take, and some time after
--   urgent    STRING ms until when no process asks for tasks of level 1 alone: a script that places one that is due before wakes those who wait, and deletes
--                  this. For a minute after a claim has asked for these and found none
--   spawned:A:ID HASH number of a span of 5 minutes -> tasks that were stored in it for the root ID of agent A; until all are forgotten
--   mover     STRING number of the last attempt of a repartition; for a day. moving:N: is in front of the names of what attempt N copies
--   watched   STRING the epoch of those who listen to events, while somebody does: see follow
--   events    STREAM epoch-number, for an hour: the last events of the store, of the first partition only; numbers that are left out, and
--                  entries without an event, are of events that were lost
--   output:P:A:ID  STREAM fence-number: what the last runs of a task have printed; no script reads it: see the package output
--   printed:A ZSET P:ID, by when the run was claimed, ms: which outputs the agent A has
--   due       STRING ms of the earliest entry of agenda and leases, then '|' kind for each parked kind, or '|*' for many: a cheap look

local base = string.sub(KEYS[1], 1, -7)
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local sub, byte = string.sub, string.byte
local listened = false -- somebody does: a script learns it from a command that it sends anyway, and answers with -now then

-- Letters and marks of what is stored, each named once. Constants cost nothing: packing puts the value of a name in its place, and
-- the number of a character in that of byte(NAME).
--
-- How the value of an agent begins, and what stands for the records of one that has a history.
local INLINE = 'S'
local FEW = 'F'
local QUEUED = 'M'
local HISTORY = '*'
-- The mark of a task in its claim.
local RUNNING = '0'
local SETTLED = '1'
local LOST = '2'
-- The fields of a claim: behind its fence, and in front of its nonce.
local CLAIM_REFS = 'r'
local CLAIM_NONCE = 'n'
-- Where a task is.
local IS_WAITING = 'w'
local IS_RUNNING = 'r'
local IS_PARKED = 'p'
local IS_FINISHED = 'd'
local IS_DROPPED = 'g' -- finished, and its record had to make room
-- What a settlement does, as store.Verb has it; the first three are also the status of a finished record.
local COMPLETED = 'c'
local FAILED = 'f'
local CANCELLED = 'x'
local AGAIN = 'r'
local REST = 'z'
local RELEASE = 'b'
-- What an order says; ORDERED is in front of a task whose order to run has a time.
local ORDER_CANCEL = 'x'
local ORDER_REPLACE = 'r'
local ORDER_REPEAT = 'q'
local ORDER_RUN = 'n'
local ORDER_TAKEN = 'h'
local ORDERED = '@'
-- Scopes of holds; HELD is in front of one in leases and in the names of places where tasks are parked.
local SCOPE_ALL = '*'
local SCOPE_KIND = 'k:'
local SCOPE_AGENT = 'a:'
local SCOPE_KEY = 's:'
local SCOPE_TASK = 't:'
local SCOPE_LIMIT = 'l:' -- a bucket
local HELD = '@'
local HELD_TASKS = '@t' -- one place for the tasks of all holds of single tasks
-- The kinds in the hint `due`: in front of each that is parked, or in place of many.
local HINT_KIND = '|'
local HINT_MANY = '|*'
-- In front of a kind in `kinds`: how many are live, run or rest, and the counters of its runs.
local COUNT_LIVE = 'l'
local COUNT_RUNNING = 'r'
local COUNT_RESTING = 'z'
local COUNT_RUNS = 's'
-- In front of a fence in `notices` whose process leaves.
local LEAVES = 'l'
-- Behind the fence of a lost run in `suspects` whose task somebody has claimed since.
local CLAIMED_SINCE = '*'
-- In front of when a task last changed, in its state, and of the length of that.
local SINCE = '='
-- In front of the fence of a claim in which tenants took turns.
local TURNS = 't'
-- The fields of `laned` and `visits` that are not about a member or a tenant, and what is in front of a tenant.
local LANED_TO = ''
local VISITS = 'n'
local VISIT_OF = 't'
-- In front of a group in `groups` while it has live tasks.
local GROUP_LIVE = '@'

local ENDED_KEPT = 1000 -- ended claims whose marks still answer a settle that is sent twice
local KNOWN = 86400000 -- ms for which the id of a task is known whose record was dropped early: store.KnownFor
local LARGE_BODY = 4096 -- bytes from which on a body weighs something
local INLINE_MOST = 1024 -- bytes of a record that its agent may hold inline: whatever looks at an agent reads and hashes all of that
