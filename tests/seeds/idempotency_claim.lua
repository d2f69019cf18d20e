-- KEYS[1] = idempotency hash key
-- ARGV[1] = owner token
-- ARGV[2] = now millis
-- ARGV[3] = in-progress ttl seconds

local state = redis.call('HGET', KEYS[1], 'state')

if not state then
  redis.call('HSET', KEYS[1],
    'state', 'IN_PROGRESS',
    'owner', ARGV[1],
    'startedAt', ARGV[2]
  )
  redis.call('EXPIRE', KEYS[1], tonumber(ARGV[3]))
  return {'CLAIMED'}
end

if state == 'COMPLETED' then
  local status = redis.call('HGET', KEYS[1], 'status')
  local body = redis.call('HGET', KEYS[1], 'body')
  return {'REPLAY', status or '', body or ''}
end

return {'BUSY', state}
