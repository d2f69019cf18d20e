-- Whether an id is seen for the first time in a window. It is kept in the bucket of the present
-- window; the bucket before is looked at too, so that no duplicate passes at the edge.
-- KEYS: 1 request marker; 2 present bucket; 3 bucket before it
-- ARGV: 1 request_ttl_ms; 2 id; 3 start_ms and 4 end_ms of the present bucket; 5 ids_max
-- Replies: FIRST; DUPLICATE; FULL retry_after_ms; PERIOD now_ms
-- Errors: INVALID period, ids_max
local start_ms, end_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[4], 1, 1e15)
local ids_max = whole(ARGV[5], 1, 1e9)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not ids_max then return refuse('ids_max') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now}, true end
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1
    or redis.call('SISMEMBER', KEYS[3], ARGV[2]) == 1 then
  return {'DUPLICATE'}, true
end
if redis.call('SCARD', KEYS[2]) >= ids_max then
  return {'FULL', 'retry_after_ms', end_ms - now}, true
end
redis.call('SADD', KEYS[2], ARGV[2])
-- At its end and one window more, however often it is touched.
redis.call('PEXPIREAT', KEYS[2], end_ms + (end_ms - start_ms))
return {'FIRST'}
