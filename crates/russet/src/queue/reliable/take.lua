-- Takes the first jobs of a reliable list queue. Jobs whose time is over come to its front again
-- before, or become dead letters after too many attempts, and so does what is stored as a job and
-- is none.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 optional: the
--   marker of an earlier claim whose reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 token (32 bytes, random for each call); 3 limit (1 to 100);
--   4 visibility_ms; 5 attempts_max; 6 ttl_ms; 7 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY
--   next_in_ms (-1: no job runs), expired
-- Errors: INVALID token, limit, visibility_ms, attempts_max, ttl_ms, dead_max
local meta, jobs, ready, taken, dead, graves =
  KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local token, limit, visibility_ms = ARGV[2], whole(ARGV[3], 1, 100), whole(ARGV[4], 1, TTL_MAX)
local attempts_max, ttl_ms = whole(ARGV[5], 1, 1e6), whole(ARGV[6], 1, TTL_MAX)
local dead_max = whole(ARGV[7], 1, 1e9)
if #token ~= TOKEN_BYTES then return refuse('token') end
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end
if KEYS[8] then redis.call('DEL', KEYS[8]) end

local now = now_ms()
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', graves)
redis.call('LLEN', ready)
redis.call('ZCARD', dead)
-- The latest first, so that the earliest comes to the front.
local expired = redis.call('ZRANGE', taken, '-inf', now, 'BYSCORE', 'LIMIT', 0, REAP_MAX)
for i = #expired, 1, -1 do
  local _, id = read_receipt(expired[i])
  redis.call('ZREM', taken, expired[i])
  -- What is no receipt goes.
  local job, packed = read_job(jobs, id or '')
  if packed then
    corrupt_letter(dead, graves, meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
  elseif job then
    job[1] = job[1] + 1
    if job[1] >= attempts_max then
      redis.call('HDEL', jobs, id)
      local letter = {now_ms = now, reason = 'visibility expired', dead_max = dead_max}
      dead_letter(dead, graves, meta, id, job, letter)
    else
      write_job(jobs, id, job)
      redis.call('LPUSH', ready, id)
    end
  end
end
if #expired > 0 then
  redis.call('HINCRBY', meta, 'expired', #expired)
end

local claimed, lost, corrupt = {}, 0, 0
while #claimed < limit and lost + corrupt < REAP_MAX do
  local popped = redis.call('LPOP', ready, limit - #claimed) or {}
  if #popped == 0 then
    break
  end
  for _, id in ipairs(popped) do
    local job, packed = read_job(jobs, id)
    if packed then
      corrupt = corrupt + 1
      corrupt_letter(dead, graves, meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
    elseif job then
      local receipt = receipt_of(token, '', id)
      -- A fraction apart, so that they keep their order if they come back, and below the
      -- millisecond, so that they come back together.
      local order = (#claimed - limit) / 1000
      redis.call('ZADD', taken, now + visibility_ms + order, receipt)
      claimed[#claimed + 1] = {id, job[4], job[1] + 1, receipt, ''}
    else
      lost = lost + 1
    end
  end
end
if lost > 0 then
  redis.call('HINCRBY', meta, 'lost', lost)
end
-- A list or set was lost, and its jobs are in none: they come back, some with each call.
local known = redis.call('ZCARD', taken) + redis.call('LLEN', ready)
local is_repaired = #claimed == 0 and known <= REPAIR_MAX and redis.call('HLEN', jobs) > known
if is_repaired then
  local is_taken = {}
  for _, receipt in ipairs(redis.call('ZRANGE', taken, 0, REPAIR_MAX - 1)) do
    local _, id = read_receipt(receipt)
    is_taken[id or ''] = true
  end
  for _, id in ipairs(redis.call('LRANGE', ready, 0, REPAIR_MAX - 1)) do
    is_taken[id] = true
  end
  local page = redis.call('HSCAN', jobs, redis.call('HGET', meta, 'rescan') or '0', 'COUNT',
    REPAIR_MAX)
  redis.call('HSET', meta, 'rescan', page[1])
  for i = 1, #page[2], 2 do
    if not is_taken[page[2][i]] then
      redis.call('RPUSH', ready, page[2][i])
    end
  end
end
local is_touched = #expired > 0 or lost > 0 or corrupt > 0 or is_repaired
if #claimed > 0 or is_touched then
  local at, is_moved = expiry(meta, now + visibility_ms + ttl_ms, ttl_ms)
  if is_moved or is_touched then
    for i = 2, #KEYS do
      redis.call('PEXPIREAT', KEYS[i], at)
    end
  else
    redis.call('PEXPIREAT', taken, at)
  end
end
if #claimed > 0 then
  return {'CLAIMED', 'jobs', claimed, 'expired', #expired}
end
local first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
local next_ms = first and math.max(0, math.ceil(first - now)) or -1
if is_repaired or redis.call('LLEN', ready) > 0 then
  next_ms = 0
end
return {'EMPTY', 'next_in_ms', next_ms, 'expired', #expired}, not is_touched
