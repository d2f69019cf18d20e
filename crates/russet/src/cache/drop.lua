-- Removes an entry and takes the lock from its loader, whose value is too old now. May run twice.
-- KEYS: 1 the entry; 2 the lock of its loader; 3 the newest version
-- ARGV: 1 version, 0 for none; 2 version_ttl_ms
-- Replies: DROPPED; NEWER
-- Errors: INVALID version, version_ttl_ms
local version = whole(ARGV[1], 0, 2 ^ 53 - 1)
if not version then return refuse('version') end
if not whole(ARGV[2], 1, 1e13) then return refuse('version_ttl_ms') end
if version > 0 then
  if version < (tonumber(redis.call('GET', KEYS[3]) or 0) or 0) then
    return {'NEWER'}
  end
  local known_ms = math.max(redis.call('PTTL', KEYS[3]), tonumber(ARGV[2]))
  redis.call('SET', KEYS[3], ARGV[1], 'PX', known_ms)
end
redis.call('DEL', KEYS[1], KEYS[2])
return {'DROPPED'}
