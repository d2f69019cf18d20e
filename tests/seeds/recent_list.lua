local key = KEYS[1]
local value = ARGV[1]
local maxLen = tonumber(ARGV[2])

redis.call('LPUSH', key, value)
redis.call('LTRIM', key, 0, maxLen - 1)
return redis.call('LLEN', key)
