-- Says where a request stands, and changes nothing.
-- KEYS: 1 the record
-- ARGV: none
-- Replies: ABSENT; IN_PROGRESS attempt, retry_after_ms; COMPLETED attempt; FAILED_RETRYABLE attempt, reason; FAILED_FINAL attempt, reason
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt_count', 'deadline_ms', 'reason',
  'claim_ttl_ms')
local state, attempt = record[1], tonumber(record[2] or 0) or 0
if not state then
  return {'ABSENT'}
elseif state == 'IN_PROGRESS' then
  local left = math.max((tonumber(record[3] or 0) or 0) - now_ms(), 0)
  -- Nobody has more time than it was given, though the clock was set back.
  left = math.min(left, tonumber(record[5] or '') or left)
  return {state, 'attempt', attempt, 'retry_after_ms', left}
end
return {state, 'attempt', attempt, 'reason', record[4]}
