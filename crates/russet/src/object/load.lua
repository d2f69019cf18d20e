-- Reads some fields of a record. A field past its own deadline is not there.
-- KEYS: 1 the record
-- ARGV: for each field its name, and 1 if it has a TTL of its own, else 0
-- Replies: FOUND version, schema, created_at_ms, updated_at_ms (-1 each if it is not there),
-- ttl_ms, values (nil for a missing one); MISSING
-- Errors: INVALID fields
if #ARGV < 2 or #ARGV % 2 ~= 0 or #ARGV > 1000 then return refuse('fields') end
if redis.call('EXISTS', KEYS[1]) == 0 then return {'MISSING'} end
-- All in one command: what the record says of itself, then each field and its deadline.
local names = {'version', 'schema_version', 'created_at_ms', 'updated_at_ms'}
for i = 1, #ARGV, 2 do
  names[#names + 1] = ARGV[i]
  if ARGV[i + 1] == '1' then names[#names + 1] = ARGV[i] .. '.expires_at_ms' end
end
local kept = redis.call('HMGET', KEYS[1], unpack(names))
local now, values, at = now_ms(), {}, 4
for i = 1, #ARGV, 2 do
  at = at + 1
  local value = kept[at]
  if ARGV[i + 1] == '1' then
    at = at + 1
    if not kept[at] or (tonumber(kept[at]) or 0) <= now then value = false end
  end
  values[#values + 1] = value
end
local function number(text) return text and tonumber(text) or -1 end
return {'FOUND', 'version', number(kept[1]), 'schema', number(kept[2]), 'created_at_ms',
  number(kept[3]), 'updated_at_ms', number(kept[4]), 'ttl_ms', redis.call('PTTL', KEYS[1]),
  'values', values}
