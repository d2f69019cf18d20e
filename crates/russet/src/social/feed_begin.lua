-- Begins to publish a post, or finds out how far an earlier attempt came. Its moment is that of the
-- first attempt.
-- KEYS: 1 posts of the author; 2 posts that are not with all followers yet; 3 how far each came
-- ARGV: 1 post; 2 posts_max; 3 unfinished_max; 4 ttl_ms
-- Replies: BEGUN at_ms, cursor; DONE at_ms; BUSY (too many are unfinished)
-- Errors: INVALID post, posts_max, unfinished_max, ttl_ms
local posts_max, unfinished_max = whole(ARGV[2], 1, 1e6), whole(ARGV[3], 1, 1e6)
local ttl_ms = whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('post') end
if not posts_max then return refuse('posts_max') end
if not unfinished_max then return refuse('unfinished_max') end
if not ttl_ms then return refuse('ttl_ms') end
local at = redis.call('ZSCORE', KEYS[2], ARGV[1])
if at then
  local cursor = redis.call('HGET', KEYS[3], ARGV[1]) or ''
  return {'BEGUN', 'at_ms', tonumber(at), 'cursor', cursor}
end
at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if at then return {'DONE', 'at_ms', tonumber(at)} end
if redis.call('ZCARD', KEYS[2]) >= unfinished_max then return {'BUSY'} end
at = now_ms()
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -posts_max - 1)
redis.call('ZADD', KEYS[2], at, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'BEGUN', 'at_ms', at, 'cursor', ''}
