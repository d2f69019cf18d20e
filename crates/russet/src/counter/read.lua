-- Reads what was counted in the present window, or in one before.
-- KEYS: 1 the counter
-- ARGV: 1 window_ms; 2 ago, 0 for the present window
-- Replies: OK count, window (its number), rest_ms (until the present window ends)
-- Errors: INVALID window_ms, ago
local window, ago = whole(ARGV[1], 1, 1e12), whole(ARGV[2], 0, 400)
if not window then return refuse('window_ms') end
if not ago then return refuse('ago') end
local now = now_ms()
local index = math.floor(now / window)
local count = tonumber(redis.call('HGET', KEYS[1], string.format('%.0f', index - ago))) or 0
return {'OK', 'count', count, 'window', index - ago, 'rest_ms', (index + 1) * window - now}
