-- Puts a place where it is, moves it, or removes it.
-- KEYS: 1 the places
-- ARGV: 1 SET or CLEAR; 2 place; 3 longitude; 4 latitude; 5 places_max; 6 ttl_ms after the last
-- change
-- Replies: NEW; MOVED; REMOVED; MISSING; FULL
-- Errors: INVALID how, place, longitude, latitude, places_max, ttl_ms
local places_max, ttl_ms = whole(ARGV[5], 1, 1e9), whole(ARGV[6], 1, 1e13)
if ARGV[1] ~= 'SET' and ARGV[1] ~= 'CLEAR' then return refuse('how') end
if ARGV[2] == '' then return refuse('place') end
if not places_max then return refuse('places_max') end
if not ttl_ms then return refuse('ttl_ms') end
if ARGV[1] == 'CLEAR' then
  return {redis.call('ZREM', KEYS[1], ARGV[2]) == 1 and 'REMOVED' or 'MISSING'}
end
local longitude = decimal(ARGV[3], -180, 180)
local latitude = decimal(ARGV[4], -85.05112878, 85.05112878)
if not longitude then return refuse('longitude') end
if not latitude then return refuse('latitude') end
local is_there = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not is_there and redis.call('ZCARD', KEYS[1]) >= places_max then return {'FULL'} end
redis.call('GEOADD', KEYS[1], ARGV[3], ARGV[4], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {is_there and 'MOVED' or 'NEW'}
