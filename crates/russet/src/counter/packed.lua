-- Adds to integers of declared widths that are packed into one string; all or none.
-- KEYS: 1 request marker; 2 the string
-- ARGV: 1 request_ttl_ms; 2 ttl_ms, from the first write; 3 overflow (WRAP, SAT or FAIL); then three per change:
--   type (u1 to u53, i1 to i53), offset in bits, by
-- Replies: OK values; OVERFLOW change (the number of the first that does not fit, with FAIL)
-- Errors: INVALID ttl_ms, overflow, changes, type, offset, by
local ttl, overflow = whole(ARGV[2], 1, 1e13), ARGV[3]
local changes = (#ARGV - 3) / 3
if not ttl then return refuse('ttl_ms') end
if overflow ~= 'WRAP' and overflow ~= 'SAT' and overflow ~= 'FAIL' then return refuse('overflow') end
if not whole(changes, 1, 256) then return refuse('changes') end
for change = 1, changes do
  local at = 3 * change
  local sign, width = string.match(ARGV[at + 1], '^([ui])(%d+)$')
  if not sign or not whole(width, 1, 53) then return refuse('type') end
  if not whole(ARGV[at + 2], 0, 524288) then return refuse('offset') end
  if not whole(ARGV[at + 3], -9e15, 9e15) then return refuse('by') end
end
local is_there = redis.call('EXISTS', KEYS[2]) == 1
local values = {}
for change = 1, changes do
  local at = 3 * change
  local value = redis.call('BITFIELD', KEYS[2], 'OVERFLOW', overflow,
    'INCRBY', ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])[1]
  if not value then
    -- Changes may overlap: only here is it known that one does not fit. Those before it are undone.
    for undone = change - 1, 1, -1 do
      at = 3 * undone
      redis.call('BITFIELD', KEYS[2], 'OVERFLOW', 'FAIL',
        'INCRBY', ARGV[at + 1], ARGV[at + 2], 0 - ARGV[at + 3])
    end
    if not is_there then redis.call('DEL', KEYS[2]) end
    return {'OVERFLOW', 'change', change}, true
  end
  values[change] = value
end
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ttl) end
return {'OK', 'values', values}
