-- Counts what is in a work stream, in constant time.
-- KEYS: 1 the stream; 2 dead
-- Replies: OK lag (entries that were never delivered), running, waiting (given back, for their time),
--   dead, oldest_ms (age)
local length = redis.call('XLEN', KEYS[1])
local pending = redis.pcall('XPENDING', KEYS[1], GROUP)
local delivered, waiting = not pending.err and pending[1] or 0, 0
for _, consumer in ipairs(not pending.err and pending[4] or {}) do
  if consumer[1] == WAITING then
    waiting = tonumber(consumer[2])
  end
end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local age = first and math.max(0, now_ms() - tonumber(string.match(first[1], '^%d+'))) or 0
return {
  'OK',
  'lag', length - delivered,
  'running', delivered - waiting,
  'waiting', waiting,
  'dead', redis.call('XLEN', KEYS[2]),
  'oldest_ms', age,
}
