-- Removes an object and its entry in the index.
-- KEYS: 1 the object; 2 the index; 3 the indexed value of each object; 4 until when each lives
-- ARGV: 1 id
-- Replies: REMOVED; MISSING
local was = redis.call('HGET', KEYS[3], ARGV[1])
-- Keys that are not what they should be fail here, before anything is written.
local size = redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[4])
local removed = redis.call('DEL', KEYS[1])
if was then
  redis.call('ZREM', KEYS[2], was .. '\0' .. ARGV[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
elseif size > redis.call('HLEN', KEYS[3]) then
  -- The indexed values were lost: the entry of this object is looked for.
  local suffix, first = '\0' .. ARGV[1], 0
  repeat
    local page = redis.call('ZRANGE', KEYS[2], first, first + 999)
    for _, entry in ipairs(page) do
      if string.sub(entry, -#suffix) == suffix then
        redis.call('ZREM', KEYS[2], entry)
      end
    end
    first = first + 1000
  until #page < 1000
end
redis.call('ZREM', KEYS[4], ARGV[1])
return {removed == 1 and 'REMOVED' or 'MISSING'}
