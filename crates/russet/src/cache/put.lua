-- Stores an entry: a loader's if it still has the lock, any if its version is not older. May run twice.
-- KEYS: 1 the entry; 2 the lock of its loader; 3 the newest version
-- ARGV: 1 token of the loader, empty for a writer; 2 kind, value or null; 3 payload; 4 encoding; 5 tokens of its tags; 6 fresh_ms; 7 keep_ms; 8 load_ms; 9 version, 0 for none
-- Replies: STORED; STALE
-- Errors: INVALID kind, fresh_ms, keep_ms, load_ms, version
local fresh_ms, keep_ms = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 1, 1e13)
local load_ms, version = whole(ARGV[8], 0, 1e13), whole(ARGV[9], 0, 2 ^ 53 - 1)
if ARGV[2] ~= 'value' and ARGV[2] ~= 'null' then return refuse('kind') end
if not fresh_ms then return refuse('fresh_ms') end
if not keep_ms or keep_ms < fresh_ms then return refuse('keep_ms') end
if not load_ms then return refuse('load_ms') end
if not version then return refuse('version') end
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then
  -- A repetition of what was stored by the same loader is as good as the first.
  local writer = redis.pcall('HGET', KEYS[1], 'writer')
  return {writer == ARGV[1] and 'STORED' or 'STALE'}
end
if version > 0 then
  if version < (tonumber(redis.call('GET', KEYS[3]) or 0) or 0) then
    -- A loader is done; that of another is left alone.
    if ARGV[1] ~= '' then redis.call('DEL', KEYS[2]) end
    return {'STALE'}
  end
  -- Known for a while longer than the entry, so that a late writer is refused.
  local known_ms = math.max(redis.call('PTTL', KEYS[3]), keep_ms + 600000)
  redis.call('SET', KEYS[3], ARGV[9], 'PX', known_ms)
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'kind', ARGV[2], 'payload', ARGV[3], 'encoding', ARGV[4], 'tags', ARGV[5],
  'fresh_until_ms', now_ms() + fresh_ms, 'load_ms', load_ms, 'writer', ARGV[1])
redis.call('PEXPIRE', KEYS[1], keep_ms)
return {'STORED'}
