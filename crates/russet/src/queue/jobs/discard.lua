-- Removes a dead letter for good.
-- KEYS: 1 dead; 2 graves
-- ARGV: 1 id of the letter
-- Replies: DISCARDED; MISSING
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
redis.call('ZREM', KEYS[1], ARGV[1])
return {redis.call('HDEL', KEYS[2], ARGV[1]) == 1 and 'DISCARDED' or 'MISSING'}
