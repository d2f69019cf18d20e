-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.
local function read_receipt(receipt)
  local id, count = string.match(receipt, '^(%d+%-%d+) (%d+)$')
  return id, tonumber(count)
end

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.
local function delivery_of(stream, id)
  local pending = redis.pcall('XPENDING', stream, GROUP, id, id, 1)
  pending = not pending.err and pending[1]
  if pending then
    return pending[2] == CONSUMER and pending[4] or 0
  end
end

local function attempts_of(count)
  return count % CLAIMED_AGAIN
end

-- The field `payload` of an entry, or nil.
local function payload_of(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'payload' then
      return fields[i + 1]
    end
  end
end

-- The stream stays until what was claimed or given back is due, and for a TTL more.
local function keep(stream, keep_ms)
  if redis.call('PTTL', stream) < keep_ms then
    redis.call('PEXPIRE', stream, keep_ms)
  end
end

-- Ends an entry.
local function remove(stream, id)
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
end

-- To the dead letters, of which the oldest are dropped if there are too many.
local function dead_letter(stream, dead, id, letter)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  -- The letter first: if it can't be written, the entry stays.
  if entry then
    redis.call('XADD', dead, 'MAXLEN', letter.dead_max, '*', 'payload',
      payload_of(entry[2]) or '', 'reason', letter.reason, 'attempts', letter.attempts)
    redis.call('PEXPIRE', dead, letter.ttl_ms)
  end
  remove(stream, id)
end
