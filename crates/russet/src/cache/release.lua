-- Gives up the lock of a loader, if it still has it.
-- KEYS: 1 the lock
-- ARGV: 1 token
-- Replies: RELEASED; LOST
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'LOST'}
end
redis.call('DEL', KEYS[1])
return {'RELEASED'}
