-- Says whether a lease is held, by whoever.
-- KEYS: 1 the lease
-- Replies: FREE; HELD fence, remaining_ms
local stored = redis.call('GET', KEYS[1])
local fence, until_us, lent_ms = string.match(stored or '', '^(%d+) (%d+) (%d+) ')
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if not fence or tonumber(until_us) <= now_us then
  return {'FREE'}
end
local left_ms = math.min(math.ceil((until_us - now_us) / 1000), tonumber(lent_ms))
return {'HELD', 'fence', tonumber(fence), 'remaining_ms', left_ms}
