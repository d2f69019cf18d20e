-- Creates a record in a state, with version 1, unless it is there.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 state; 3 ttl_ms; then fields and values
-- Replies: OPENED version; EXISTS state, version
-- Errors: INVALID state, ttl_ms, fields; CORRUPT record
local ttl_ms = whole(ARGV[3], 1, 1e13)
if ARGV[2] == '' or string.find(ARGV[2], ',', 1, true) then
  return refuse('state')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif #ARGV % 2 == 0 or #ARGV > 200 then
  return refuse('fields')
end
for index = 4, #ARGV, 2 do
  local field = ARGV[index]
  if field == 'state' or field == 'version' or field == 'created_at_ms'
    or field == 'updated_at_ms' then
    return refuse('fields')
  end
end
local found = redis.call('HMGET', KEYS[2], 'state', 'version')
if found[1] and found[2] then
  return {'EXISTS', 'state', found[1], 'version', tonumber(found[2])}, true
elseif redis.call('EXISTS', KEYS[2]) == 1 then
  return redis.error_reply('CORRUPT record')
end
local now = string.format('%.0f', now_ms())
for index = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
end
redis.call('HSET', KEYS[2], 'state', ARGV[2], 'version', 1, 'created_at_ms', now,
  'updated_at_ms', now)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'OPENED', 'version', 1}
