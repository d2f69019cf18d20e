-- Forgets what has happened up to a position, which the database has.
-- KEYS: 1 outbox
-- ARGV: 1 position
-- Replies: OK forgotten; AHEAD last (the position is of a later event than the last there was: of
--   another outbox, or the store has lost some. Nothing was forgotten)
-- Errors: INVALID position
local ms, sequence = string.match(ARGV[1], '^(%d+)%-(%d+)$')
if not whole(ms, 0, 1e15) or not whole(sequence, 0, 1e15) then return refuse('position') end
local info = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'STREAM', KEYS[1]) or {}
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then
    local last_ms, last_sequence = string.match(info[i + 1], '^(%d+)%-(%d+)$')
    local past_ms = tonumber(ms) - tonumber(last_ms)
    if past_ms > 0 or past_ms == 0 and tonumber(sequence) > tonumber(last_sequence) then
      return {'AHEAD', 'last', info[i + 1]}
    end
  end
end
local next_id = ms .. '-' .. string.format('%.0f', tonumber(sequence) + 1)
return {'OK', 'forgotten', redis.call('XTRIM', KEYS[1], 'MINID', next_id)}
