-- KEYS[1] = idempotency hash key
-- ARGV[1] = expected owner token
-- ARGV[2] = response status
-- ARGV[3] = response body
-- ARGV[4] = completed ttl seconds

local owner = redis.call('HGET', KEYS[1], 'owner')
local state = redis.call('HGET', KEYS[1], 'state')

if owner ~= ARGV[1] or state ~= 'IN_PROGRESS' then
  return 0
end

redis.call('HSET', KEYS[1],
  'state', 'COMPLETED',
  'status', ARGV[2],
  'body', ARGV[3]
)
redis.call('EXPIRE', KEYS[1], tonumber(ARGV[4]))
return 1
