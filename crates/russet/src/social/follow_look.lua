-- What holds between a user and others, and how many there are.
-- KEYS: 1 whom the user follows; 2 followers of the user; 3 pending changes
-- ARGV: 1... others
-- Replies: OK following, followers, follows (1 or 0 for each), followed_by (1 or 0 for each),
-- pending (other, SET or CLEAR, version, ...; at most 100)
-- Errors: INVALID others
if #ARGV > 1000 then return refuse('others') end
local follows, followed_by, pending = {}, {}, {}
for i = 1, #ARGV do
  follows[i] = redis.call('ZSCORE', KEYS[1], ARGV[i]) and 1 or 0
  followed_by[i] = redis.call('ZSCORE', KEYS[2], ARGV[i]) and 1 or 0
end
local changes = redis.call('ZRANGE', KEYS[3], 0, 99, 'WITHSCORES')
for i = 1, #changes, 2 do
  pending[#pending + 1] = changes[i]
  pending[#pending + 1] = redis.call('ZSCORE', KEYS[1], changes[i]) and 'SET' or 'CLEAR'
  pending[#pending + 1] = changes[i + 1]
end
return {'OK', 'following', redis.call('ZCARD', KEYS[1]), 'followers', redis.call('ZCARD', KEYS[2]),
  'follows', follows, 'followed_by', followed_by, 'pending', pending}
