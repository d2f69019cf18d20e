-- Claims a request for one owner, or says what became of it. Same owner, same claim: it may run twice.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 fingerprint of the request; 3 claim_ttl_ms; 4 result_ttl_ms
-- Replies: CLAIMED attempt, is_takeover; REPLAY body; FAILED reason; IN_FLIGHT retry_after_ms; MISMATCH
-- Errors: INVALID owner, claim_ttl_ms, result_ttl_ms
local claim_ttl, result_ttl = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('owner') end
if not claim_ttl then return refuse('claim_ttl_ms') end
if not result_ttl or result_ttl < claim_ttl then return refuse('result_ttl_ms') end
local now = now_ms()
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fingerprint', 'deadline_ms',
  'attempt_count', 'is_takeover', 'created_at_ms', 'claim_ttl_ms')
local state = record[1]
if state and record[3] ~= ARGV[2] then
  return {'MISMATCH'}
elseif state == 'COMPLETED' then
  return {'REPLAY', 'body', redis.call('HGET', KEYS[1], 'body')}
elseif state == 'FAILED_FINAL' then
  return {'FAILED', 'reason', redis.call('HGET', KEYS[1], 'reason')}
end
local is_running = state == 'IN_PROGRESS'
local is_own = is_running and record[2] == ARGV[1]
local deadline = tonumber(record[4] or 0) or 0
if is_running and not is_own and now < deadline then
  local lent = tonumber(record[8] or '') or claim_ttl
  if deadline - now > lent then
    -- The clock was set back: nobody has more time than it was given.
    deadline = now + lent
    redis.call('HSET', KEYS[1], 'deadline_ms', deadline)
  end
  return {'IN_FLIGHT', 'retry_after_ms', deadline - now}
end
local attempt, is_takeover = tonumber(record[5] or 0) or 0, record[6] == '1'
if not is_own then
  attempt, is_takeover = attempt + 1, is_running
end
redis.call('HSET', KEYS[1], 'schema_version', 1, 'state', 'IN_PROGRESS', 'owner', ARGV[1],
  'fingerprint', ARGV[2], 'deadline_ms', now + claim_ttl, 'claim_ttl_ms', claim_ttl,
  'attempt_count', attempt,
  'is_takeover', is_takeover and 1 or 0, 'created_at_ms', record[7] or now, 'updated_at_ms', now)
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'CLAIMED', 'attempt', attempt, 'is_takeover', is_takeover and 1 or 0}
