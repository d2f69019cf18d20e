-- Gives up the places of a charge under limits of concurrency.
-- KEYS: 1 marker of the request that was charged; 2 and on: one key per limit of concurrency
-- ARGV: 1 charge, as the reply gave it; 2 cost
-- Replies: RELEASED; GONE if it held none any more
-- Errors: INVALID charge, cost, limits
local charge, charged = string.match(ARGV[1], '^(.+)/(%d+)$')
charged = whole(charged, 1, 1e4)
if not charged or #charge > 64 then return refuse('charge') end
local cost = whole(ARGV[2], 1, charged)
if not cost then return refuse('cost') end
if #KEYS < 2 or #KEYS > 17 then return refuse('limits') end
local released = 0
for i = 2, #KEYS do
  for entry = 1, cost do
    released = released + redis.call('ZREM', KEYS[i], charge .. ':' .. entry)
  end
end
if released == 0 then return {'GONE'} end
-- The same request may take a place anew.
redis.call('DEL', KEYS[1])
return {'RELEASED'}
