local stockKey = "promo:stock:" .. KEYS[1]
local userSetKey = "promo:users:" .. KEYS[1]
if tonumber(redis.call('GET', stockKey)) <= 0 then
return 1
end
if redis.call('SISMEMBER', userSetKey, ARGV[1]) == 1 then
return 2
end
redis.call('INCRBY', stockKey, -1)
redis.call('SADD', userSetKey, ARGV[1])
redis.call('XADD', 'order:stream', '*', 'userId', ARGV[1], 'promoId', KEYS[1])
return 0
