-- How many were active on every one of some days, or on any of them. Takes time in proportion to
-- the bitmaps: no work for a request of a user.
-- KEYS: 1 scratch, which is gone afterwards; 2... bitmaps of the days
-- ARGV: 1 EVERY or ANY
-- Replies: OK active
-- Errors: INVALID how, days
if #KEYS < 2 or #KEYS > 101 then return refuse('days') end
if ARGV[1] == 'EVERY' then
  redis.call('BITOP', 'AND', unpack(KEYS))
elseif ARGV[1] == 'ANY' then
  redis.call('BITOP', 'OR', unpack(KEYS))
else
  return refuse('how')
end
local active = redis.call('BITCOUNT', KEYS[1])
redis.call('DEL', KEYS[1])
return {'OK', 'active', active}
