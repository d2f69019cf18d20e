-- Counts the holders, or waiters, whose time is not over.
-- KEYS: 1 a sorted set of until when each lives, in milliseconds
-- Replies: OK count
return {'OK', 'count', redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now_ms()), '+inf')}
