-- Asks a Bloom filter. One that is not complete does not know.
-- KEYS: 1 the filter; 2 its mark: complete, or the token of its filling
-- ARGV: 1 bloom or bits; from 2 on the item for bloom, else its offsets
-- Replies: PRESENT; ABSENT; UNKNOWN
-- Errors: INVALID mode, offset
if ARGV[1] ~= 'bloom' and ARGV[1] ~= 'bits' then return refuse('mode') end
if redis.call('GET', KEYS[2]) ~= 'complete' or redis.call('EXISTS', KEYS[1]) == 0 then
  return {'UNKNOWN'}
end
for index = 2, #ARGV do
  local is_there
  if ARGV[1] == 'bits' then
    if not whole(ARGV[index], 0, 2 ^ 32 - 1) then return refuse('offset') end
    is_there = redis.call('GETBIT', KEYS[1], ARGV[index])
  else
    is_there = redis.call('BF.EXISTS', KEYS[1], ARGV[index])
  end
  if is_there ~= 1 and is_there ~= true then
    return {'ABSENT'}
  end
end
return {'PRESENT'}
