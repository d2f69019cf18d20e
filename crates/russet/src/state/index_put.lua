-- Stores an object and its entry in the index, and removes the entry of what it was before.
-- KEYS: 1 request marker; 2 the object; 3 the index; 4 the indexed value of each object; 5 until
-- when each object lives
-- ARGV: 1 request_ttl_ms; 2 id; 3 indexed value; 4 ttl_ms; 5 objects_max; 6 expected version, 0
-- for any; then fields and values
-- Replies: STORED version; STALE version; FULL
-- Errors: INVALID id, value, ttl_ms, objects_max, version, fields
local id, value = ARGV[2], ARGV[3]
local ttl_ms, objects_max = whole(ARGV[4], 1, 1e13), whole(ARGV[5], 1, 1e6)
local expected = whole(ARGV[6], 0, 9e15)
if id == '' or string.find(id, '\0', 1, true) then
  return refuse('id')
elseif string.find(value, '\0', 1, true) then
  return refuse('value')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not objects_max then
  return refuse('objects_max')
elseif not expected then
  return refuse('version')
elseif #ARGV % 2 ~= 0 or #ARGV > 300 then
  return refuse('fields')
end
for index = 7, #ARGV, 2 do
  if ARGV[index] == 'version' then return refuse('fields') end
end
local now = now_ms()
-- Objects whose time is over leave the index, a few with each write.
local dead = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, 16)
for _, gone in ipairs(dead) do
  local was = redis.call('HGET', KEYS[4], gone)
  if was then
    redis.call('ZREM', KEYS[3], was .. '\0' .. gone)
    redis.call('HDEL', KEYS[4], gone)
  end
  redis.call('ZREM', KEYS[5], gone)
end

-- If one of the three was lost, the others say what it had; an object whose deadline was lost lives as
-- long as this one.
local size, known = redis.call('ZCARD', KEYS[3]), redis.call('HLEN', KEYS[4])
if size ~= known or redis.call('ZCARD', KEYS[5]) < known then
  for first = 0, known < size and size - 1 or -1, 1000 do
    for _, entry in ipairs(redis.call('ZRANGE', KEYS[3], first, first + 999)) do
      local at = string.find(entry, '%z')
      redis.call('HSET', KEYS[4], string.sub(entry, at + 1), string.sub(entry, 1, at - 1))
    end
  end
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', KEYS[4], cursor, 'COUNT', 1000)
    cursor = page[1]
    for index = 1, #page[2], 2 do
      redis.call('ZADD', KEYS[3], 0, page[2][index + 1] .. '\0' .. page[2][index])
      redis.call('ZADD', KEYS[5], 'NX', now + ttl_ms, page[2][index])
    end
  until cursor == '0'
  for index = 3, 5 do
    if redis.call('PTTL', KEYS[index]) < ttl_ms then
      redis.call('PEXPIRE', KEYS[index], ttl_ms)
    end
  end
end

local version = tonumber(redis.call('HGET', KEYS[2], 'version') or 0)
if expected ~= 0 and expected ~= version then
  return {'STALE', 'version', version}, true
end
local was = redis.call('HGET', KEYS[4], id)
if not was and redis.call('HLEN', KEYS[4]) >= objects_max then
  return {'FULL'}, true
end
redis.call('DEL', KEYS[2])
for index = 7, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
end
redis.call('HSET', KEYS[2], 'version', string.format('%.0f', version + 1))
redis.call('PEXPIRE', KEYS[2], ttl_ms)
if was and was ~= value then
  redis.call('ZREM', KEYS[3], was .. '\0' .. id)
end
redis.call('ZADD', KEYS[3], 0, value .. '\0' .. id)
redis.call('HSET', KEYS[4], id, value)
redis.call('ZADD', KEYS[5], now + ttl_ms, id)
for index = 3, 5 do
  if redis.call('PTTL', KEYS[index]) < ttl_ms then
    redis.call('PEXPIRE', KEYS[index], ttl_ms)
  end
end
return {'STORED', 'version', version + 1}
