-- How many like it, who was first or last, and whether some users do.
-- KEYS: 1 when each user liked it
-- ARGV: 1 count of likers, which may be 0; 2 FIRST or LAST; 3... users to look for
-- Replies: OK likes, likers (user, liked_at_ms, ...), liked (1 or 0 for each user)
-- Errors: INVALID count, order, users
local count = whole(ARGV[1], 0, 1000)
if not count then return refuse('count') end
if ARGV[2] ~= 'FIRST' and ARGV[2] ~= 'LAST' then return refuse('order') end
if #ARGV > 1002 then return refuse('users') end
local likers, liked = {}, {}
if count > 0 then
  if ARGV[2] == 'FIRST' then
    likers = redis.call('ZRANGE', KEYS[1], 0, count - 1, 'WITHSCORES')
  else
    likers = redis.call('ZRANGE', KEYS[1], 0, count - 1, 'REV', 'WITHSCORES')
  end
end
for i = 3, #ARGV do
  liked[i - 2] = redis.call('ZSCORE', KEYS[1], ARGV[i]) and 1 or 0
end
return {'OK', 'likes', redis.call('ZCARD', KEYS[1]), 'likers', likers, 'liked', liked}
