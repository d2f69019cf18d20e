-- Marks a Bloom filter as complete: from now on what it does not have is known not to exist. One that
-- was lost since its filling began is not.
-- KEYS: 1 the filter; 2 its mark: complete, or the token of its filling
-- ARGV: 1 bloom or bits; 2 ttl_ms; 3 capacity; 4 error_rate; 5 bit_count; 6 mark that the additions
--   replied, empty if there were none
-- Replies: COMPLETE; LOST (it has to be filled again)
-- Errors: INVALID mode, ttl_ms, capacity, error_rate, bit_count
local ttl, capacity = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 2 ^ 32)
local error_rate, bit_count = decimal(ARGV[4], 0, 1), whole(ARGV[5], 1, 2 ^ 32)
if ARGV[1] ~= 'bloom' and ARGV[1] ~= 'bits' then return refuse('mode') end
if not ttl then return refuse('ttl_ms') end
if not capacity then return refuse('capacity') end
if not error_rate or error_rate == 0 or error_rate == 1 then return refuse('error_rate') end
if not bit_count then return refuse('bit_count') end
local is_there = redis.call('EXISTS', KEYS[1]) == 1
if ARGV[6] ~= '' then
  local mark = redis.call('GET', KEYS[2])
  if not is_there or (mark ~= ARGV[6] and mark ~= 'complete') then
    return {'LOST'}
  end
end
if not is_there then
  if ARGV[1] == 'bits' then
    redis.call('SETBIT', KEYS[1], bit_count - 1, 0)
  else
    redis.call('BF.RESERVE', KEYS[1], ARGV[4], capacity)
  end
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('SET', KEYS[2], 'complete', 'PX', ttl)
return {'COMPLETE'}
