-- Puts an item before the others of a list that keeps the latest ones.
-- KEYS: 1 request marker; 2 the list
-- ARGV: 1 request_ttl_ms; 2 item; 3 items_max; 4 ttl_ms; 5 KEEP or MOVE: what an earlier one does
-- Replies: OK items
-- Errors: INVALID items_max, ttl_ms, repeats
local items_max, ttl_ms = whole(ARGV[3], 1, 10000), whole(ARGV[4], 1, 1e13)
if not items_max then return refuse('items_max') end
if not ttl_ms then return refuse('ttl_ms') end
if ARGV[5] ~= 'KEEP' and ARGV[5] ~= 'MOVE' then return refuse('repeats') end
if ARGV[5] == 'MOVE' then redis.call('LREM', KEYS[2], 0, ARGV[2]) end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('LTRIM', KEYS[2], 0, items_max - 1)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'OK', 'items', redis.call('LLEN', KEYS[2])}
