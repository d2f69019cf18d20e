-- Gives an entry of a work stream back: it is delivered again after a delay of at most the
-- visibility, or becomes a dead letter after too many attempts. Its receipt is worth nothing then.
-- KEYS: 1 request marker; 2 the stream; 3 dead
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 delay_ms; 4 reason; 5 attempts_max (0: a dead letter at
--   once); 6 visibility_ms; 7 ttl_ms; 8 dead_max; 9 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts; DEAD attempts; STALE (it was given back, or delivered again);
--   GONE
-- Errors: INVALID receipt, delay_ms, attempts_max, visibility_ms, ttl_ms, dead_max
local stream = KEYS[2]
local id, delivery = read_receipt(ARGV[2])
local delay_ms, attempts_max = whole(ARGV[3], 0, TTL_MAX), whole(ARGV[5], 0, 1e6)
local visibility_ms, ttl_ms = whole(ARGV[6], 1, TTL_MAX), whole(ARGV[7], 1, TTL_MAX)
local dead_max = whole(ARGV[8], 1, 1e9)
if not id then return refuse('receipt') end
if not delay_ms then return refuse('delay_ms') end
if not attempts_max then return refuse('attempts_max') end
if not visibility_ms then return refuse('visibility_ms') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end

local count = delivery_of(stream, id)
if count ~= delivery then
  return {count and 'STALE' or 'GONE'}, true
end
if ARGV[9] == '1' then
  count = count - 1
end
local attempts = attempts_of(count)
if ARGV[9] ~= '1' and attempts >= attempts_max then
  local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempts, reason = ARGV[4]}
  dead_letter(stream, KEYS[3], id, letter)
  return {'DEAD', 'attempts', attempts}
end
local idle = math.max(0, visibility_ms - delay_ms)
redis.call('XCLAIM', stream, GROUP, WAITING, 0, id, 'IDLE', idle, 'RETRYCOUNT',
  string.format('%.0f', count), 'JUSTID')
keep(stream, visibility_ms - idle + ttl_ms)
return {'RETRIED', 'attempts', attempts}
