-- Writes fields of a record, in one piece, and raises its version. A field with a TTL of its own
-- has its deadline in a field beside it, which readers go by; servers that can expire fields do so
-- too.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 CREATE (if it is not there), PUT, UPDATE (if it is there) or NEWER (if
-- its source is newer); 3 expected version of an update, or version of the source, or empty; 4
-- ttl_ms; 5 KEEP or RENEW the TTL; 6 schema; 7 how many fields are set; then of each the name, the
-- value and field_ttl_ms, 0 for none; then the names of fields to remove
-- Replies: OK version; EXISTS version; MISSING; CONFLICT version; STALE source_version
-- Errors: INVALID mode, expected, ttl_ms, ttl_mode, schema, fields
local mode, expected = ARGV[2], nil
local ttl_ms, schema = whole(ARGV[4], 1, 1e13), whole(ARGV[6], 1, 4294967295)
local count = whole(ARGV[7], 0, 1000)
if mode ~= 'CREATE' and mode ~= 'PUT' and mode ~= 'UPDATE' and mode ~= 'NEWER' then
  return refuse('mode')
end
if ARGV[3] ~= '' or mode == 'NEWER' then
  expected = whole(ARGV[3], 0, 9007199254740991)
  if not expected then return refuse('expected') end
end
if not ttl_ms then return refuse('ttl_ms') end
if ARGV[5] ~= 'KEEP' and ARGV[5] ~= 'RENEW' then return refuse('ttl_mode') end
if not schema then return refuse('schema') end
if not count or #ARGV < 7 + 3 * count then return refuse('fields') end
-- What the store itself keeps is no field: whoever sets or removes the version defeats it.
local RESERVED = {version = true, schema_version = true, created_at_ms = true,
  updated_at_ms = true, source_version = true}
local function is_field(name)
  return name ~= '' and not RESERVED[name] and not string.find(name, '%.expires_at_ms$')
end
for i = 8, 7 + 3 * count, 3 do
  if not is_field(ARGV[i]) or not whole(ARGV[i + 2], 0, 1e13) then return refuse('fields') end
end
for i = 8 + 3 * count, #ARGV do
  if not is_field(ARGV[i]) then return refuse('fields') end
end

local kept = redis.call('HMGET', KEYS[2], 'version', 'schema_version', 'source_version')
local version = tonumber(kept[1] or 0)
local is_there = redis.call('EXISTS', KEYS[2]) == 1
if mode == 'CREATE' and is_there then return {'EXISTS', 'version', version}, true end
if mode == 'UPDATE' and not is_there then return {'MISSING'}, true end
if mode == 'UPDATE' and expected and expected ~= version then
  return {'CONFLICT', 'version', version}, true
end
if mode == 'NEWER' and kept[3] and tonumber(kept[3]) >= expected then
  return {'STALE', 'source_version', tonumber(kept[3])}, true
end

local now = now_ms()
version = version + 1
-- A program of an older schema does not take back what a newer one has done, but for a whole
-- record.
if mode == 'UPDATE' then schema = math.max(schema, tonumber(kept[2] or 0)) end
local set = {'version', version, 'schema_version', schema, 'updated_at_ms', now}
if mode == 'NEWER' then
  set[#set + 1] = 'source_version'
  set[#set + 1] = expected
end
for i = 8, 7 + 3 * count, 3 do
  set[#set + 1] = ARGV[i]
  set[#set + 1] = ARGV[i + 1]
end
redis.call('HSET', KEYS[2], unpack(set))
redis.call('HSETNX', KEYS[2], 'created_at_ms', now)
for i = 8, 7 + 3 * count, 3 do
  local name, field_ttl_ms = ARGV[i], tonumber(ARGV[i + 2])
  if field_ttl_ms > 0 then
    local deadline = name .. '.expires_at_ms'
    redis.call('HSET', KEYS[2], deadline, now + field_ttl_ms)
    redis.pcall('HPEXPIREAT', KEYS[2], now + field_ttl_ms, 'FIELDS', 2, name, deadline)
  end
end
for i = 8 + 3 * count, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i], ARGV[i] .. '.expires_at_ms')
end
if ARGV[5] == 'RENEW' or redis.call('PTTL', KEYS[2]) < 0 then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'OK', 'version', version}
