-- Reserves a block of numbers that nobody else gets: a millisecond and positions within it.
-- KEYS: 1 the generator
-- ARGV: 1 count, how many; 2 server, the run_id of the server that runs this; 3 margin_ms, by how much the time
--   jumps ahead when another server has taken over; 4 ttl_ms, longer than the margin
-- Replies: OK time_ms, first, count. An id is (time_ms - 1735689600000) * 2^22 + position, for positions from first,
--   each replaced by (position * 2654435 + time_ms * 40503) mod 2^22 so that neighbours do not show the volume
-- Errors: INVALID count, server, margin_ms, ttl_ms; OVERFLOW (the time is past the year 2094)
-- Notes: a second run reserves a second block; gaps are harmless.
local count, server = whole(ARGV[1], 1, 4096), ARGV[2]
local margin, ttl = whole(ARGV[3], 0, 1e9), whole(ARGV[4], 1, 1e13)
if not count then return refuse('count') end
if not server or #server == 0 or #server > 64 then return refuse('server') end
if not margin then return refuse('margin_ms') end
if not ttl or ttl <= margin then return refuse('ttl_ms') end
local stored = redis.call('HMGET', KEYS[1], 'time', 'next', 'server')
local time, first = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0
local now = now_ms()
if stored[3] ~= server then
  -- Another server may have given out more than this one knows of, by a clock that was ahead.
  time, first = math.max(time, now) + margin, 0
elseif now > time then
  time, first = now, 0
elseif first + count > 4194304 then
  -- The millisecond is used up: the next one is taken before its time.
  time, first = time + 1, 0
end
if time - 1735689600000 >= 2199023255552 then return redis.error_reply('OVERFLOW the time') end
redis.call('HSET', KEYS[1], 'time', string.format('%.0f', time), 'next', first + count, 'server', server)
redis.call('PEXPIRE', KEYS[1], math.max(ttl, time - now + ttl))
return {'OK', 'time_ms', time, 'first', first, 'count', count}
