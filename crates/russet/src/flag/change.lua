-- Changes what is stored of a flag, raises the version of all flags and writes who did it.
-- KEYS: 1 the flags; 2 the audit
-- ARGV: 1 flag; 2 actor; 3 what was done; 4 ttl_ms; 5 flags_max; 6 audit_max; 7 whether it may
-- create the flag, 1 or 0; then attributes and values, an empty value removing the attribute. A flag
-- is there as long as it has the attribute switch
-- Replies: CHANGED version; UNCHANGED version; MISSING version; FULL version
-- Errors: INVALID flag, ttl_ms, flags_max, audit_max, attributes
local flag = ARGV[1]
local ttl_ms, flags_max = whole(ARGV[4], 1, 1e13), whole(ARGV[5], 1, 10000)
local audit_max = whole(ARGV[6], 1, 10000)
if not string.find(flag, '^[%w%-%._]+$') or #flag > 64 then
  return refuse('flag')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not flags_max then
  return refuse('flags_max')
elseif not audit_max then
  return refuse('audit_max')
elseif #ARGV % 2 == 0 or #ARGV > 27 then
  return refuse('attributes')
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('LLEN', KEYS[2])
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
local exists = redis.call('HEXISTS', KEYS[1], flag .. ':switch') == 1
if not exists then
  if ARGV[7] ~= '1' then
    return {'MISSING', 'version', version}
  elseif tonumber(redis.call('HGET', KEYS[1], 'count') or 0) >= flags_max then
    return {'FULL', 'version', version}
  end
end
local is_changed, is_switched = not exists, exists
for index = 8, #ARGV, 2 do
  is_switched = is_switched or ARGV[index] == 'switch' and ARGV[index + 1] ~= ''
  local before = redis.call('HGET', KEYS[1], flag .. ':' .. ARGV[index]) or ''
  is_changed = is_changed or before ~= ARGV[index + 1]
end
-- Without one it is no flag, and nobody would count it.
if not is_switched then
  return refuse('attributes')
end
if not is_changed then
  return {'UNCHANGED', 'version', version}
end
for index = 8, #ARGV, 2 do
  if ARGV[index + 1] == '' then
    redis.call('HDEL', KEYS[1], flag .. ':' .. ARGV[index])
  else
    redis.call('HSET', KEYS[1], flag .. ':' .. ARGV[index], ARGV[index + 1])
  end
end
local remains = redis.call('HEXISTS', KEYS[1], flag .. ':switch') == 1
if remains ~= exists then
  redis.call('HINCRBY', KEYS[1], 'count', remains and 1 or -1)
end
-- Moments, but never the same twice and never back: flags that were lost and made anew have another
-- version than those that a reader may still know.
local now = now_ms()
version = math.max(now, version + 1)
redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version))
redis.call('PEXPIRE', KEYS[1], ttl_ms)
redis.call('LPUSH', KEYS[2], cmsgpack.pack({now, ARGV[2], ARGV[3], flag, version}))
redis.call('LTRIM', KEYS[2], 0, audit_max - 1)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'CHANGED', 'version', version}
