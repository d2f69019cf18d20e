-- Users who follow a user and are followed by it.
-- KEYS: 1 whom the user follows; 2 followers of the user
-- ARGV: 1 count
-- Replies: OK users
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 1000)
if not count then return refuse('count') end
local small, large = KEYS[1], KEYS[2]
if redis.call('ZCARD', KEYS[2]) < redis.call('ZCARD', KEYS[1]) then
  small, large = KEYS[2], KEYS[1]
end
-- Piece by piece, so that no more than the bound of the smaller one is ever looked at.
local users, first = {}, 0
repeat
  local piece = redis.call('ZRANGE', small, first, first + 499)
  for i = 1, #piece do
    if #users < count and redis.call('ZSCORE', large, piece[i]) then
      users[#users + 1] = piece[i]
    end
  end
  first = first + 500
until #piece < 500 or #users >= count
return {'OK', 'users', users}
