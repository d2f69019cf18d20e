-- Reads an entry. Who finds none, or one that is due, is elected to load it if nobody else is.
-- KEYS: 1 the entry; 2 the lock of its loader
-- ARGV: 1 token of the caller, empty to read only; 2 lock_ttl_ms; 3 tokens of its tags; 4 early_factor
-- Replies: HIT kind, payload, encoding, is_stale, is_elected, fresh_for_ms, load_ms; MISS is_elected, holder, retry_after_ms; CORRUPT
-- Errors: INVALID lock_ttl_ms, early_factor
local early = decimal(ARGV[4], 0, 1e9)
if not whole(ARGV[2], 1, 1e13) then return refuse('lock_ttl_ms') end
if not early then return refuse('early_factor') end
local entry = redis.pcall('HMGET', KEYS[1], 'kind', 'payload', 'fresh_until_ms', 'load_ms', 'tags',
  'encoding')
if entry.err then
  return {'CORRUPT'}
end
local fresh_until, load_ms = tonumber(entry[3] or 0), tonumber(entry[4] or 0)
if not fresh_until or not load_ms or (entry[1] and not (entry[2] and entry[6])) then
  return {'CORRUPT'}
end
local now = now_ms()
local is_there = entry[1] and entry[5] == ARGV[3]
local is_elected, holder, lock_ms = 0, '', 0
if ARGV[1] ~= '' and (not is_there or now + early * load_ms >= fresh_until) then
  if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
    is_elected = 1
  else
    holder = redis.call('GET', KEYS[2])
    lock_ms = math.max(redis.call('PTTL', KEYS[2]), 0)
    is_elected = holder == ARGV[1] and 1 or 0
  end
end
if not is_there then
  return {'MISS', 'is_elected', is_elected, 'holder', holder, 'retry_after_ms', lock_ms}
end
return {'HIT', 'kind', entry[1], 'payload', entry[2], 'encoding', entry[6],
  'is_stale', now >= fresh_until and 1 or 0, 'is_elected', is_elected,
  'fresh_for_ms', math.max(fresh_until - now, 0), 'load_ms', load_ms}
