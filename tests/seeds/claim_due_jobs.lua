local delayedKey = KEYS[1]
local processingKey = KEYS[2]
local now = tonumber(ARGV[1])
local limit = tonumber(ARGV[2])
local visibilityUntil = tonumber(ARGV[3])

local jobs = redis.call('ZRANGE', delayedKey, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
for _, job in ipairs(jobs) do
  redis.call('ZREM', delayedKey, job)
  redis.call('ZADD', processingKey, visibilityUntil, job)
end
return jobs
