-- Takes entries of a work stream: first those that were delivered and not acknowledged in time,
-- which become dead letters after too many attempts, then new ones.
-- KEYS: 1 request marker; 2 the stream; 3 dead; 4 optional: the marker of an earlier claim whose
--   reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 limit (1 to 100); 3 visibility_ms; 4 attempts_max; 5 ttl_ms; 6 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY expired,
--   last_id (what comes behind it is new: XREAD can wait for that)
-- Errors: INVALID limit, visibility_ms, attempts_max, ttl_ms, dead_max
local stream, dead = KEYS[2], KEYS[3]
local limit, visibility_ms = whole(ARGV[2], 1, 100), whole(ARGV[3], 1, TTL_MAX)
local attempts_max, ttl_ms = whole(ARGV[4], 1, 1e6), whole(ARGV[5], 1, TTL_MAX)
local dead_max = whole(ARGV[6], 1, 1e9)
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end
-- A key that is not what it should be fails here, before an entry is claimed.
redis.call('XLEN', dead)
if KEYS[4] then redis.call('DEL', KEYS[4]) end

if redis.call('EXISTS', stream) == 0 then
  return {'EMPTY', 'expired', 0, 'last_id', '0-0'}, true
end
local stale = redis.pcall('XPENDING', stream, GROUP, 'IDLE', visibility_ms, '-', '+', limit)
if stale.err then
  -- The stream was made by another program.
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0')
  stale = {}
end
local jobs, expired = {}, 0
local function give(id, fields, count)
  local payload, attempt = payload_of(fields), attempts_of(count)
  if payload then
    jobs[#jobs + 1] = {id, payload, attempt, id .. ' ' .. string.format('%.0f', count), ''}
  else
    local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempt}
    letter.reason = 'it has no field payload'
    dead_letter(stream, dead, id, letter)
  end
end
for _, pending in ipairs(stale) do
  local id, attempts = pending[1], attempts_of(pending[4])
  -- One that was given back has waited for its time, and is not late.
  if pending[2] ~= WAITING then
    expired = expired + 1
  end
  if attempts >= attempts_max then
    local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempts}
    letter.reason = 'visibility expired'
    dead_letter(stream, dead, id, letter)
  else
    local count = pending[4] + CLAIMED_AGAIN + 1
    local entry = redis.call('XCLAIM', stream, GROUP, CONSUMER, visibility_ms, id, 'RETRYCOUNT',
      string.format('%.0f', count))[1]
    if entry then
      give(id, entry[2], count)
    end
  end
end
if #jobs < limit then
  local read = redis.call('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', limit - #jobs,
    'STREAMS', stream, '>')
  for _, entry in ipairs(read and read[1][2] or {}) do
    give(entry[1], entry[2], 1)
  end
end
if #jobs == 0 then
  -- Whatever comes behind the last entry that there is, is new.
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  return {'EMPTY', 'expired', expired, 'last_id', last and last[1] or '0-0'}, #stale == 0
end
keep(stream, visibility_ms + ttl_ms)
return {'CLAIMED', 'jobs', jobs, 'expired', expired}
