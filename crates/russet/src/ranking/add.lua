-- Adds to the score of a member of a leaderboard, sets it, or raises it. The entry of a member has
-- the moment of its last change before its name, so that among equals the first is ahead.
-- KEYS: 1 request marker; 2 the board; 3 entries by member; 4 mark of a closed board
-- ARGV: 1 request_ttl_ms; 2 member; 3 score; 4 ADD, SET or BEST; 5 start_ms and 6 end_ms of the
-- period, end_ms 0 for none; 7 ttl_ms after the end, or after the last change without an end;
-- 8 members_max
-- Replies: KEPT score; BELOW score (the board is full of higher ones); CLOSED; PERIOD now_ms
-- Errors: INVALID member, score, how, period, ttl_ms, members_max
local SCORE_MAX, TRIM_MAX = 9007199254740991, 1000
local member, how = ARGV[2], ARGV[4]
local given = whole(ARGV[3], -SCORE_MAX, SCORE_MAX)
local start_ms, end_ms = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15)
local ttl_ms, members_max = whole(ARGV[7], 1, 1e13), whole(ARGV[8], 1, 1e9)
if member == '' then return refuse('member') end
if not given then return refuse('score') end
if how ~= 'ADD' and how ~= 'SET' and how ~= 'BEST' then return refuse('how') end
if not start_ms or not end_ms then return refuse('period') end
if not ttl_ms then return refuse('ttl_ms') end
if not members_max then return refuse('members_max') end

local now = now_ms()
if end_ms > 0 and (now < start_ms or now >= end_ms) then
  return {'PERIOD', 'now_ms', now}, true
end
if redis.call('EXISTS', KEYS[4]) == 1 then return {'CLOSED'}, true end

local before = redis.call('HGET', KEYS[3], member)
if not before then
  -- If one of the two was lost the other says who is on the board, or belongs to nothing.
  local size = redis.call('ZCARD', KEYS[2])
  if size == 0 then
    redis.call('UNLINK', KEYS[3])
  elseif redis.call('HLEN', KEYS[3]) < size then
    for first = 0, size - 1, TRIM_MAX do
      for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], first, first + TRIM_MAX - 1)) do
        redis.call('HSET', KEYS[3], string.sub(entry, 16), entry)
      end
    end
    before = redis.call('HGET', KEYS[3], member)
  end
end
local score_before = before and tonumber(redis.call('ZSCORE', KEYS[2], before))
local score = given
if how == 'ADD' then
  score = (score_before or 0) + given
elseif how == 'BEST' and score_before and score_before > given then
  score = score_before
end
if score > SCORE_MAX or score < -SCORE_MAX then return refuse('score') end

if score ~= score_before then
  if before then redis.call('ZREM', KEYS[2], before) end
  local entry = string.format('%014.0f:', 99999999999999 - now) .. member
  redis.call('ZADD', KEYS[2], score, entry)
  redis.call('HSET', KEYS[3], member, entry)
  local excess = math.min(redis.call('ZCARD', KEYS[2]) - members_max, TRIM_MAX)
  if excess > 0 then
    for _, lowest in ipairs(redis.call('ZRANGE', KEYS[2], 0, excess - 1)) do
      redis.call('HDEL', KEYS[3], string.sub(lowest, 16))
    end
    redis.call('ZREMRANGEBYRANK', KEYS[2], 0, excess - 1)
  end
end
local expires_at = (end_ms > 0 and end_ms or now) + ttl_ms
redis.call('PEXPIREAT', KEYS[2], expires_at)
redis.call('PEXPIREAT', KEYS[3], expires_at)
local is_kept = redis.call('HEXISTS', KEYS[3], member) == 1
return {is_kept and 'KEPT' or 'BELOW', 'score', score}
