-- Tells the side of the one who is followed. Changes may come late, twice or in the wrong order:
-- the one with the highest version holds.
-- KEYS: 1 followers; 2 those who have gone lately, with the version
-- ARGV: 1 follower; 2 SET or CLEAR; 3 version; 4 followers_max; 5 ttl_ms; 6 gone_ttl_ms, how long a
-- late change is known to be late, of the last 10000
-- Replies: APPLIED followers; LATE followers; FULL followers
-- Errors: INVALID how, version, followers_max, ttl_ms, gone_ttl_ms
local version, followers_max = whole(ARGV[3], 1, 1e15), whole(ARGV[4], 1, 1e9)
local ttl_ms, gone_ttl_ms = whole(ARGV[5], 1, 1e13), whole(ARGV[6], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not version then return refuse('version') end
if not followers_max then return refuse('followers_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not gone_ttl_ms then return refuse('gone_ttl_ms') end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - gone_ttl_ms)
local present = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
local gone = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local followers = redis.call('ZCARD', KEYS[1])
if math.max(present, gone) >= version then return {'LATE', 'followers', followers} end
if ARGV[2] == 'SET' then
  if present == 0 and followers >= followers_max then
    return {'FULL', 'followers', followers}
  end
  redis.call('ZADD', KEYS[1], version, ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[2], version, ARGV[1])
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -10001)
  redis.call('PEXPIRE', KEYS[2], gone_ttl_ms)
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'APPLIED', 'followers', redis.call('ZCARD', KEYS[1])}
