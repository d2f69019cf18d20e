-- Writes a value for the holder of a lease, unless a later holder, or a later write of the same
-- one, was there before.
-- KEYS: 1 the record
-- ARGV: 1 fence; 2 turn, which write of the holder it is; 3 ttl_ms; 4 whether there is a value, 1
-- or 0; 5 the value
-- Replies: WRITTEN; STALE fence, turn
-- Errors: INVALID fence, turn, ttl_ms, has_value
local fence, turn = whole(ARGV[1], 1, 9e15), whole(ARGV[2], 0, 9e15)
local ttl_ms = whole(ARGV[3], 1, 1e12)
if not fence then
  return refuse('fence')
elseif not turn then
  return refuse('turn')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif ARGV[4] ~= '0' and ARGV[4] ~= '1' then
  return refuse('has_value')
end
local last = redis.call('HMGET', KEYS[1], 'fence', 'turn')
local last_fence, last_turn = tonumber(last[1] or 0), tonumber(last[2] or 0)
if fence < last_fence or (fence == last_fence and turn < last_turn) then
  return {'STALE', 'fence', last_fence, 'turn', last_turn}
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'turn', ARGV[2])
if ARGV[4] == '1' then
  redis.call('HSET', KEYS[1], 'value', ARGV[5])
else
  redis.call('HDEL', KEYS[1], 'value')
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'WRITTEN'}
