-- Keeps the lock of a loader that is still at work.
-- KEYS: 1 the lock
-- ARGV: 1 token; 2 lock_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID lock_ttl_ms
if not whole(ARGV[2], 1, 1e13) then return refuse('lock_ttl_ms') end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'LOST'}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'KEPT'}
