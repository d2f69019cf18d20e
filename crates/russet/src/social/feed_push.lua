-- Puts a post into an inbox, once, and forgets the oldest ones beyond the bound.
-- KEYS: 1 the inbox
-- ARGV: 1 post; 2 at_ms; 3 inbox_max; 4 ttl_ms after the last post
-- Replies: NEW; ALREADY
-- Errors: INVALID post, at_ms, inbox_max, ttl_ms
local at_ms, inbox_max = whole(ARGV[2], 0, 1e15), whole(ARGV[3], 1, 1e6)
local ttl_ms = whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('post') end
if not at_ms then return refuse('at_ms') end
if not inbox_max then return refuse('inbox_max') end
if not ttl_ms then return refuse('ttl_ms') end
local added = redis.call('ZADD', KEYS[1], 'NX', at_ms, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -inbox_max - 1)
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {added == 1 and 'NEW' or 'ALREADY'}
