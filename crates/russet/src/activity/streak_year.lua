-- The days of a year on which a user signed in.
-- KEYS: 1 bitmap of the year
-- Replies: OK bitmap (the first day is the highest bit of the first byte)
return {'OK', 'bitmap', redis.call('GETRANGE', KEYS[1], 0, 45)}
