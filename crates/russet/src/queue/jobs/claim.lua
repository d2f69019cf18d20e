-- Takes due jobs, each for as long as its visibility lasts. Jobs whose time is over are given to
-- others first, or become dead letters after too many attempts, and so does what is stored as a job
-- and is none. If a key of the queue was lost, a claim that finds nothing repairs what it can.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 optional: the marker of an earlier claim whose reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 token (32 bytes, random for each call); 3 limit (1 to 100);
--   4 visibility_ms; 5 attempts_max; 6 group_limit (0: none); 7 ttl_ms; 8 aging_ms; 9 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY
--   next_in_ms (-1: nothing is planned), expired
-- Errors: INVALID token, limit, visibility_ms, group_limit, ttl_ms, aging_ms, and as soon as they
--   are needed attempts_max, dead_max
local meta, jobs, ready, delayed, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local parked, dead, graves = KEYS[7], KEYS[8], KEYS[9]
local token, limit, visibility_ms = ARGV[2], whole(ARGV[3], 1, 100), whole(ARGV[4], 1, TTL_MAX)
local group_limit, ttl_ms = whole(ARGV[6], 0, 1e9), whole(ARGV[7], 1, TTL_MAX)
local aging_ms = whole(ARGV[8], 0, TTL_MAX / PRIORITY_MAX)
if #token ~= TOKEN_BYTES then return refuse('token') end
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not group_limit then return refuse('group_limit') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end
if KEYS[10] then redis.call('DEL', KEYS[10]) end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local touched = false
local set = redis.call('HMGET', meta, 'expires_at', 'swept_ms', 'counted')
if not set[1] or not set[3] then
  -- Rare: nothing was ever scheduled, or a key was lost.
  if redis.call('EXISTS', jobs) == 0 then
    return {'EMPTY', 'next_in_ms', -1, 'expired', 0}, true
  end
  -- `meta` was lost.
  if not whole(ARGV[5], 1, 1e6) then return refuse('attempts_max') end
  if not whole(ARGV[9], 1, 1e9) then return refuse('dead_max') end
  set[1], touched = expiry(meta, now_ms + visibility_ms + ttl_ms, ttl_ms), true
  repair(meta, jobs, ready, delayed, taken, parked, now, aging_ms * 1000)
end

local expired_count = 0
if tonumber(set[2]) ~= now_ms then
  -- Rare: once in a millisecond is often enough to look for what time has changed.
  local attempts_max, dead_max = whole(ARGV[5], 1, 1e6), whole(ARGV[9], 1, 1e9)
  if not attempts_max then return refuse('attempts_max') end
  if not dead_max then return refuse('dead_max') end
  -- Keys that are not what they should be fail here, before anything is written.
  redis.call('HLEN', jobs)
  redis.call('HLEN', graves)
  redis.call('ZCARD', ready)
  redis.call('ZCARD', delayed)
  redis.call('ZCARD', parked)
  redis.call('ZCARD', dead)
  -- Whoever took these has not come back.
  local expired = redis.call('ZRANGE', taken, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, REAP_MAX)
  for i, receipt in ipairs(expired) do
    touched = true
    local group, id = read_receipt(receipt)
    -- What is no receipt goes.
    group, id = group or '', id or ''
    redis.call('ZREM', taken, receipt)
    leave_group(meta, jobs, parked, ready, group)
    local job, packed = read_job(jobs, id)
    if packed then
      local letter = {now_ms = now_ms, dead_max = dead_max}
      corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
    elseif job and (job[5] or job[1] + 1 >= attempts_max) then
      redis.call('HDEL', jobs, id)
      if not job[5] then
        job[1] = job[1] + 1
        local letter = {now_ms = now_ms, reason = 'visibility expired', dead_max = dead_max}
        dead_letter(dead, graves, meta, id, job, letter)
      end
    elseif job then
      job[1] = job[1] + 1
      write_job(jobs, id, job)
      make_ready(ready, id, now + i, job[2] * aging_ms * 1000)
    end
  end
  expired_count = #expired
  if expired_count > 0 then
    redis.call('HINCRBY', meta, 'expired', expired_count)
  end

  -- These have become due.
  local due =
    redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE', 'LIMIT', 0, REAP_MAX, 'WITHSCORES')
  for i = 1, #due, 2 do
    touched = true
    redis.call('ZREM', delayed, due[i])
    local job, packed = read_job(jobs, due[i])
    if job or packed then
      make_ready(ready, due[i], tonumber(due[i + 1]), (job and job[2] or 0) * aging_ms * 1000)
    end
  end
  -- If there was more than one look can see, the next claim looks again.
  if expired_count < REAP_MAX and #due < 2 * REAP_MAX then
    redis.call('HSET', meta, 'swept_ms', now_ms)
  end
end

local claimed, seen, lost = {}, 0, 0
while #claimed < limit and seen < limit + REAP_MAX do
  local popped = redis.call('ZPOPMIN', ready, limit - #claimed)
  if #popped == 0 then
    break
  end
  for i = 1, #popped, 2 do
    seen = seen + 1
    local id = popped[i]
    local job, packed = read_job(jobs, id)
    local group = job and job[3] or ''
    local running = group ~= '' and tonumber(redis.call('HGET', meta, 'g:' .. group) or 0)
    if job and job[5] then
      -- Rare: it was cancelled while another had it.
      redis.call('HDEL', jobs, id)
      touched = true
      unpark(jobs, parked, ready, group)
    elseif job and running and group_limit > 0 and running >= group_limit then
      -- Rare: its group is at its limit.
      touched = true
      park(parked, group, tonumber(popped[i + 1]), id)
    elseif job then
      if running then
        redis.call('HINCRBY', meta, 'g:' .. group, 1)
      end
      -- As `receipt_of` writes it.
      local receipt = token .. ':' .. #group .. ':' .. group .. id
      -- A fraction apart, so that they keep their order if they come back, and none above the
      -- millisecond, so that they come back together.
      local order = (#claimed + 1 - limit) / 1000
      redis.call('ZADD', taken, now_ms + visibility_ms + order, receipt)
      claimed[#claimed + 1] = {id, job[4], job[1] + 1, receipt, group}
    elseif packed then
      -- Rare: what is stored is no job.
      touched = true
      local letter = {now_ms = now_ms, dead_max = whole(ARGV[9], 1, 1e9) or REAP_MAX}
      corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
    else
      lost = lost + 1
    end
  end
end
if lost > 0 then
  touched = true
  redis.call('HINCRBY', meta, 'lost', lost)
end
local is_repaired = false
if #claimed == 0 and redis.call('HLEN', jobs) > redis.call('ZCARD', ready)
  + redis.call('ZCARD', delayed) + redis.call('ZCARD', taken) + redis.call('ZCARD', parked) then
  -- Rare: a set was lost, and its jobs are in none.
  is_repaired = repair(meta, jobs, ready, delayed, taken, parked, now, aging_ms * 1000)
  touched = touched or is_repaired
end

if touched or #claimed > 0 then
  local at, wanted = tonumber(set[1]), now_ms + visibility_ms + ttl_ms
  if at < wanted or touched then
    -- Rare: a quarter of the TTL apart, unless something else has changed.
    at = expiry(meta, wanted, ttl_ms)
    for i = 2, #KEYS do
      redis.call('PEXPIREAT', KEYS[i], at)
    end
  else
    redis.call('PEXPIREAT', taken, at)
  end
end
if #claimed > 0 then
  return {'CLAIMED', 'jobs', claimed, 'expired', expired_count}
end
if is_repaired then
  return {'EMPTY', 'next_in_ms', 0, 'expired', expired_count}
end
if redis.call('ZCARD', ready) > 0 then
  -- More than one call looks at: the next one goes on.
  return {'EMPTY', 'next_in_ms', 0, 'expired', expired_count}, not touched
end
local next_ms = -1
local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if first then
  next_ms = math.max(0, math.ceil(first / 1000) - now_ms)
end
first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
if first and (next_ms < 0 or first - now_ms < next_ms) then
  next_ms = math.max(0, math.ceil(first - now_ms))
end
return {'EMPTY', 'next_in_ms', next_ms, 'expired', expired_count}, not touched
