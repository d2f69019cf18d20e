-- How many were active on a day, and what that takes.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- Replies: OK active, bytes (of the bitmap), indexes (given so far)
return {'OK', 'active', redis.call('BITCOUNT', KEYS[2]), 'bytes', redis.call('STRLEN', KEYS[2]),
  'indexes', redis.call('HLEN', KEYS[1])}
