-- Adds to a Bloom filter. One that is filled has a token of this filling; if filter or mark were lost
-- meanwhile it has another one, and is not complete.
-- KEYS: 1 the filter; 2 its mark: complete, or the token of its filling
-- ARGV: 1 bloom or bits; 2 ttl_ms; 3 capacity; 4 error_rate; 5 token of a filling, if this begins one;
--   from 6 on items for bloom, else offsets
-- Replies: ADDED mark
-- Errors: INVALID mode, ttl_ms, capacity, error_rate, token, offset
local ttl, capacity = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 2 ^ 32)
local error_rate = decimal(ARGV[4], 0, 1)
if ARGV[1] ~= 'bloom' and ARGV[1] ~= 'bits' then return refuse('mode') end
if not ttl then return refuse('ttl_ms') end
if not capacity then return refuse('capacity') end
if not error_rate or error_rate == 0 or error_rate == 1 then return refuse('error_rate') end
if ARGV[5] == '' or ARGV[5] == 'complete' then return refuse('token') end
if ARGV[1] == 'bits' then
  for index = 6, #ARGV do
    if not whole(ARGV[index], 0, 2 ^ 32 - 1) then return refuse('offset') end
  end
end
-- A key that is not what it should be fails here, before anything is written.
if ARGV[1] == 'bits' then redis.call('STRLEN', KEYS[1]) end
local mark = redis.call('GET', KEYS[2])
if not mark or redis.call('EXISTS', KEYS[1]) == 0 then
  mark = ARGV[5]
  redis.call('SET', KEYS[2], mark, 'PX', ttl)
elseif mark ~= 'complete' then
  redis.call('PEXPIRE', KEYS[2], ttl)
end
for index = 6, #ARGV do
  if ARGV[1] == 'bits' then
    redis.call('SETBIT', KEYS[1], ARGV[index], 1)
  else
    redis.call('BF.INSERT', KEYS[1], 'CAPACITY', capacity, 'ERROR', ARGV[4], 'ITEMS', ARGV[index])
  end
end
if redis.call('PTTL', KEYS[1]) < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return {'ADDED', 'mark', mark}
