-- Adds to a field of a record that is there, within bounds, and raises the record's version.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 field; 3 by; 4 least and 5 most that it may become; 6 optional:
-- field_ttl_ms, of a field with a TTL of its own, which begins with it if it is not there
-- Replies: OK value, version; MISSING; BOUND value; CORRUPT
-- Errors: INVALID field, by, bounds, field_ttl_ms
local EXACT_MAX = 9007199254740991
local by = whole(ARGV[3], -EXACT_MAX, EXACT_MAX)
local least, most = whole(ARGV[4], -EXACT_MAX, EXACT_MAX), whole(ARGV[5], -EXACT_MAX, EXACT_MAX)
local field = ARGV[2]
if field == '' or field == 'version' or field == 'schema_version' or field == 'created_at_ms'
  or field == 'updated_at_ms' or field == 'source_version'
  or string.find(field, '%.expires_at_ms$') then
  return refuse('field')
end
if not by then return refuse('by') end
if not least or not most or least > most then return refuse('bounds') end
local field_ttl_ms = whole(ARGV[6] or '0', 0, 1e13)
if not field_ttl_ms then return refuse('field_ttl_ms') end
if redis.call('EXISTS', KEYS[2]) == 0 then return {'MISSING'}, true end
local deadline = field .. '.expires_at_ms'
local deadline_ms = tonumber(redis.call('HGET', KEYS[2], deadline))
local now = now_ms()
-- One past its deadline is not there, and neither is one that has lost it.
local is_new = deadline_ms and deadline_ms <= now or field_ttl_ms > 0 and not deadline_ms
local stored = not is_new and redis.call('HGET', KEYS[2], field) or '0'
local before = whole(stored, -EXACT_MAX, EXACT_MAX)
if not before then return {'CORRUPT'}, true end
local value = before + by
if value < least or value > most then return {'BOUND', 'value', before}, true end
if is_new then
  -- It begins anew: its old deadline would hide it.
  redis.call('HDEL', KEYS[2], field, deadline)
end
redis.call('HINCRBY', KEYS[2], field, by)
if is_new and field_ttl_ms > 0 then
  redis.call('HSET', KEYS[2], deadline, now + field_ttl_ms)
  redis.pcall('HPEXPIREAT', KEYS[2], now + field_ttl_ms, 'FIELDS', 2, field, deadline)
end
redis.call('HSET', KEYS[2], 'updated_at_ms', now)
return {'OK', 'value', value, 'version', redis.call('HINCRBY', KEYS[2], 'version', 1)}
