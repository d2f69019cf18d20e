#!lua name=russet_v1
-- What all steps share. Times are the server's, in milliseconds.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A whole number between two bounds, or nil. A text must be as commands take it too: no spaces, no
-- exponent, no zeros before it. Else a command would refuse what was accepted here, half way. Most
-- are short enough for `tostring` to write them so; the pattern takes longer.
local function whole(text, least, most)
  local number = tonumber(text)
  if number and number >= least and number <= most and number % 1 == 0
    and (number > 0 and number < 1e14 and text == tostring(number) or text == number
      or text == '0' or string.find(text, '^%-?[1-9]%d*$')) then
    return number
  end
end

-- A decimal number between two bounds, or nil: neither `nan` nor a hexadecimal one.
local function decimal(text, least, most)
  local number = tonumber(text)
  if number and number >= least and number <= most and string.find(text, '^[%d%.eE+-]+$') then
    return number
  end
end

-- The reply to a bad argument. Nothing may have been written before.
local function refuse(what)
  return redis.error_reply('INVALID ' .. what)
end

-- The reply that an earlier run of the same request has left.
local function remembered(marker, ttl_ms)
  if ttl_ms == '0' then
    return nil
  end
  if not whole(ttl_ms, 1, 1e13) then
    return refuse('request_ttl_ms')
  end
  local kept = redis.call('GET', marker)
  if kept then
    local is_read, reply = pcall(cmsgpack.unpack, kept)
    if is_read and type(reply) == 'table' and type(reply[1]) == 'string' then
      return reply
    end
    return redis.error_reply('CORRUPT request')
  end
end

-- Leaves the reply for a later run of the same request, unless nothing has changed.
local function remember(marker, ttl_ms, reply, is_unchanged)
  if ttl_ms ~= '0' and not is_unchanged and not reply.err then
    redis.call('SET', marker, cmsgpack.pack(reply), 'PX', tonumber(ttl_ms))
  end
  return reply
end

do
local function step(KEYS, ARGV)
-- Marks members as active today. A member that was never seen gets the next index: indexes are
-- dense.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 retention_ms; 4 members_max; 5... members
-- Replies: OK new, again, refused (they would be beyond members_max), indexes (given so far);
-- PERIOD now_ms
-- Errors: INVALID period, retention_ms, members_max, members
local start_ms, end_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e15)
local retention_ms, members_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e9)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not retention_ms then return refuse('retention_ms') end
if not members_max then return refuse('members_max') end
if #ARGV < 5 or #ARGV > 1004 then return refuse('members') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end

-- A key that is not what it should be fails here, before anything is written.
redis.call('STRLEN', KEYS[2])
local new, again, refused = 0, 0, 0
local indexes = redis.call('HLEN', KEYS[1])
for i = 5, #ARGV do
  local index = redis.call('HGET', KEYS[1], ARGV[i])
  if not index and indexes < members_max then
    index = indexes
    redis.call('HSET', KEYS[1], ARGV[i], index)
    indexes = indexes + 1
  end
  if not index then
    refused = refused + 1
  elseif redis.call('SETBIT', KEYS[2], index, 1) == 0 then
    new = new + 1
  else
    again = again + 1
  end
end
redis.call('PEXPIREAT', KEYS[2], end_ms + retention_ms)
-- The indexes outlive every bitmap: given anew they would mean others in the old ones.
local expires_at = end_ms + retention_ms + (end_ms - start_ms)
if redis.call('PEXPIRETIME', KEYS[1]) < expires_at then
  redis.call('PEXPIREAT', KEYS[1], expires_at)
end
return {'OK', 'new', new, 'again', again, 'refused', refused, 'indexes', indexes}
end
redis.register_function{function_name = 'russet_v1_daily_mark', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Whether a member was active on a day.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- ARGV: 1 member
-- Replies: OK active (1 or 0)
local index = redis.call('HGET', KEYS[1], ARGV[1])
if not index then return {'OK', 'active', 0} end
return {'OK', 'active', redis.call('GETBIT', KEYS[2], index)}
end
redis.register_function{function_name = 'russet_v1_daily_seen', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- How many were active on a day, and what that takes.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- Replies: OK active, bytes (of the bitmap), indexes (given so far)
return {'OK', 'active', redis.call('BITCOUNT', KEYS[2]), 'bytes', redis.call('STRLEN', KEYS[2]),
  'indexes', redis.call('HLEN', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_daily_count', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- How many were active on every one of some days, or on any of them. Takes time in proportion to
-- the bitmaps: no work for a request of a user.
-- KEYS: 1 scratch, which is gone afterwards; 2... bitmaps of the days
-- ARGV: 1 EVERY or ANY
-- Replies: OK active
-- Errors: INVALID how, days
if #KEYS < 2 or #KEYS > 101 then return refuse('days') end
if ARGV[1] == 'EVERY' then
  redis.call('BITOP', 'AND', unpack(KEYS))
elseif ARGV[1] == 'ANY' then
  redis.call('BITOP', 'OR', unpack(KEYS))
else
  return refuse('how')
end
local active = redis.call('BITCOUNT', KEYS[1])
redis.call('DEL', KEYS[1])
return {'OK', 'active', active}
end
redis.register_function{function_name = 'russet_v1_daily_combine', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Whether an id is seen for the first time in a window. It is kept in the bucket of the present
-- window; the bucket before is looked at too, so that no duplicate passes at the edge.
-- KEYS: 1 request marker; 2 present bucket; 3 bucket before it
-- ARGV: 1 request_ttl_ms; 2 id; 3 start_ms and 4 end_ms of the present bucket; 5 ids_max
-- Replies: FIRST; DUPLICATE; FULL retry_after_ms; PERIOD now_ms
-- Errors: INVALID period, ids_max
local start_ms, end_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[4], 1, 1e15)
local ids_max = whole(ARGV[5], 1, 1e9)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not ids_max then return refuse('ids_max') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now}, true end
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1
    or redis.call('SISMEMBER', KEYS[3], ARGV[2]) == 1 then
  return {'DUPLICATE'}, true
end
if redis.call('SCARD', KEYS[2]) >= ids_max then
  return {'FULL', 'retry_after_ms', end_ms - now}, true
end
redis.call('SADD', KEYS[2], ARGV[2])
-- At its end and one window more, however often it is touched.
redis.call('PEXPIREAT', KEYS[2], end_ms + (end_ms - start_ms))
return {'FIRST'}
end
redis.register_function{function_name = 'russet_v1_dedupe_first', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Whether an id was seen, and how many ids the present bucket has.
-- KEYS: 1 present bucket; 2 bucket before it
-- ARGV: 1 id; 2 start_ms and 3 end_ms of the present bucket
-- Replies: OK seen (1 or 0), ids; PERIOD now_ms
-- Errors: INVALID period
local start_ms, end_ms = whole(ARGV[2], 0, 1e15), whole(ARGV[3], 1, 1e15)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local seen = redis.call('SISMEMBER', KEYS[1], ARGV[1])
if seen == 0 then seen = redis.call('SISMEMBER', KEYS[2], ARGV[1]) end
return {'OK', 'seen', seen, 'ids', redis.call('SCARD', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_dedupe_has', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Puts an item with its state and its deadline, or replaces both.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 state; 3 ttl_ms of the item; 4 items_max; 5 grace_ms, how long items outlive
-- their deadline if nobody handles them
-- Replies: NEW expires_at_ms; REPLACED expires_at_ms; FULL
-- Errors: INVALID ttl_ms, items_max, grace_ms
local ttl_ms, items_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e9)
local grace_ms = whole(ARGV[5], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
if not items_max then return refuse('items_max') end
if not grace_ms then return refuse('grace_ms') end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
-- States whose deadlines were lost belong to nothing.
if redis.call('ZCARD', KEYS[1]) == 0 then redis.call('UNLINK', KEYS[2]) end
local is_there = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not is_there and redis.call('ZCARD', KEYS[1]) >= items_max then return {'FULL'} end
local expires_at_ms = now_ms() + ttl_ms
redis.call('ZADD', KEYS[1], expires_at_ms, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone_at_ms = expires_at_ms + grace_ms
if redis.call('PEXPIRETIME', KEYS[1]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[1], gone_at_ms)
end
if redis.call('PEXPIRETIME', KEYS[2]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[2], gone_at_ms)
end
return {is_there and 'REPLACED' or 'NEW', 'expires_at_ms', expires_at_ms}
end
redis.register_function{function_name = 'russet_v1_expiry_put', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives an item a later deadline. One that is due, handled or unknown is not renewed.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 ttl_ms from now; 3 grace_ms
-- Replies: RENEWED expires_at_ms; MISSING
-- Errors: INVALID ttl_ms, grace_ms
local ttl_ms, grace_ms = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
if not grace_ms then return refuse('grace_ms') end
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
local now = now_ms()
if not before or tonumber(before) <= now then return {'MISSING'} end
local expires_at_ms = math.max(now + ttl_ms, tonumber(before))
redis.call('ZADD', KEYS[1], expires_at_ms, ARGV[1])
local gone_at_ms = expires_at_ms + grace_ms
if redis.call('PEXPIRETIME', KEYS[1]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[1], gone_at_ms)
end
if redis.call('PEXPIRETIME', KEYS[2]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[2], gone_at_ms)
end
return {'RENEWED', 'expires_at_ms', expires_at_ms}
end
redis.register_function{function_name = 'russet_v1_expiry_renew', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Items that are due, the longest due first; or one item, due or not.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 count; 2 item, optional
-- Replies: OK items (item, expires_at_ms, state, ...), total
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 1000)
if not count then return refuse('count') end
local items = {}
if ARGV[2] then
  local deadline = redis.call('ZSCORE', KEYS[1], ARGV[2])
  if deadline then items = {ARGV[2], deadline} end
else
  items = redis.call('ZRANGE', KEYS[1], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, count,
    'WITHSCORES')
end
local found = {}
for i = 1, #items, 2 do
  local state = redis.call('HGET', KEYS[2], items[i]) or ''
  found[#found + 1] = items[i]
  found[#found + 1] = items[i + 1]
  found[#found + 1] = state
end
return {'OK', 'items', found, 'total', redis.call('ZCARD', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_expiry_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes an item with its state, in one piece. With a deadline only if it still has that one.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 expires_at_ms that was seen, optional
-- Replies: REMOVED; RENEWED expires_at_ms; MISSING
-- Errors: INVALID expires_at_ms
if ARGV[2] and not whole(ARGV[2], 0, 1e15) then return refuse('expires_at_ms') end
local deadline = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not deadline then return {'MISSING'} end
if ARGV[2] and tonumber(ARGV[2]) ~= tonumber(deadline) then
  return {'RENEWED', 'expires_at_ms', tonumber(deadline)}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return {'REMOVED'}
end
redis.register_function{function_name = 'russet_v1_expiry_remove', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes items that are due, with their states, and gives them to one caller.
-- KEYS: 1 request marker; 2 deadlines by item; 3 states by item
-- ARGV: 1 request_ttl_ms; 2 count
-- Replies: OK items (item, expires_at_ms, state, ...)
-- Errors: INVALID count
local count = whole(ARGV[2], 1, 1000)
if not count then return refuse('count') end
local items = redis.call('ZRANGE', KEYS[2], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, count,
  'WITHSCORES')
local found = {}
for i = 1, #items, 2 do
  local state = redis.call('HGET', KEYS[3], items[i]) or ''
  found[#found + 1] = items[i]
  found[#found + 1] = items[i + 1]
  found[#found + 1] = state
  redis.call('ZREM', KEYS[2], items[i])
  redis.call('HDEL', KEYS[3], items[i])
end
return {'OK', 'items', found}, #found == 0
end
redis.register_function{function_name = 'russet_v1_expiry_take', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 2 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Says that a member is there, and forgets those who have been silent too long.
-- KEYS: 1 last seen by member
-- ARGV: 1 member; 2 timeout_ms; 3 members_max
-- Replies: JOINED present; REFRESHED present; FULL present
-- Errors: INVALID timeout_ms, members_max
local timeout_ms, members_max = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e9)
if not timeout_ms then return refuse('timeout_ms') end
if not members_max then return refuse('members_max') end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - timeout_ms)
local was = redis.call('ZSCORE', KEYS[1], ARGV[1])
local present = redis.call('ZCARD', KEYS[1])
if not was and present >= members_max then return {'FULL', 'present', present} end
redis.call('ZADD', KEYS[1], 'GT', now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], timeout_ms)
if was then return {'REFRESHED', 'present', present} end
return {'JOINED', 'present', present + 1}
end
redis.register_function{function_name = 'russet_v1_presence_beat', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Says that a member has gone.
-- KEYS: 1 last seen by member
-- ARGV: 1 member
-- Replies: LEFT; ABSENT
return {redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and 'LEFT' or 'ABSENT'}
end
redis.register_function{function_name = 'russet_v1_presence_leave', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Who is there, the last seen first.
-- KEYS: 1 last seen by member
-- ARGV: 1 timeout_ms; 2 count, which may be 0; 3 a member to look for, optional
-- Replies: OK present, members (member, last_seen_ms, ...), is_there (1 or 0)
-- Errors: INVALID timeout_ms, count
local timeout_ms, count = whole(ARGV[1], 1, 1e13), whole(ARGV[2], 0, 1000)
if not timeout_ms then return refuse('timeout_ms') end
if not count then return refuse('count') end
local since = now_ms() - timeout_ms
local after = string.format('(%.0f', since)
local members = {}
if count > 0 then
  members = redis.call('ZRANGE', KEYS[1], '+inf', after, 'BYSCORE', 'REV', 'LIMIT', 0, count,
    'WITHSCORES')
end
local seen = ARGV[3] and redis.call('ZSCORE', KEYS[1], ARGV[3])
return {'OK', 'present', redis.call('ZCOUNT', KEYS[1], after, '+inf'), 'members', members,
  'is_there', seen and tonumber(seen) > since and 1 or 0}
end
redis.register_function{function_name = 'russet_v1_presence_list', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
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
end
redis.register_function{function_name = 'russet_v1_recent_push', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The latest items, the last one first.
-- KEYS: 1 the list
-- ARGV: 1 count
-- Replies: OK items
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 10000)
if not count then return refuse('count') end
return {'OK', 'items', redis.call('LRANGE', KEYS[1], 0, count - 1)}
end
redis.register_function{function_name = 'russet_v1_recent_list', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes an item off the list, or without one all of them.
-- KEYS: 1 the list
-- ARGV: 1 item, optional
-- Replies: OK removed
if ARGV[1] then return {'OK', 'removed', redis.call('LREM', KEYS[1], 0, ARGV[1])} end
local items = redis.call('LLEN', KEYS[1])
redis.call('DEL', KEYS[1])
return {'OK', 'removed', items}
end
redis.register_function{function_name = 'russet_v1_recent_remove', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Signs a user in for a day, once.
-- KEYS: 1 the streak: last_day, current, longest, total; 2 bitmap of the year
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 number of the day since 1970; 4 its index in the
-- year, from 0; 5 retention_ms
-- Replies: SIGNED current, longest, total; AGAIN current, longest, total; PERIOD now_ms
-- Errors: INVALID period, day, retention_ms
local start_ms, end_ms = whole(ARGV[1], -1e9, 1e15), whole(ARGV[2], 1, 1e15)
local day, index = whole(ARGV[3], 0, 1e7), whole(ARGV[4], 0, 365)
local retention_ms = whole(ARGV[5], 1, 1e13)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not day or not index then return refuse('day') end
if not retention_ms then return refuse('retention_ms') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end

-- A key that is not what it should be fails here, before anything is written.
redis.call('STRLEN', KEYS[2])
local kept = redis.call('HMGET', KEYS[1], 'last_day', 'current', 'longest', 'total')
local last_day, current = tonumber(kept[1] or -2), tonumber(kept[2] or 0)
local longest, total = tonumber(kept[3] or 0), tonumber(kept[4] or 0)
-- A clock that has gone back signs no day twice.
local is_again = last_day >= day
if not is_again then
  current = last_day == day - 1 and current + 1 or 1
  longest = math.max(longest, current)
  total = total + 1
  redis.call('HSET', KEYS[1], 'last_day', day, 'current', current, 'longest', longest, 'total',
    total)
  redis.call('SETBIT', KEYS[2], index, 1)
end
local expires_at = end_ms + retention_ms
if redis.call('PEXPIRETIME', KEYS[1]) < expires_at then
  redis.call('PEXPIREAT', KEYS[1], expires_at)
end
if redis.call('PEXPIRETIME', KEYS[2]) < expires_at then
  redis.call('PEXPIREAT', KEYS[2], expires_at)
end
return {is_again and 'AGAIN' or 'SIGNED', 'current', current, 'longest', longest, 'total', total}
end
redis.register_function{function_name = 'russet_v1_sign_in', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The streak of a user. One who has not signed in yet today still has that of yesterday.
-- KEYS: 1 the streak
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 number of the day since 1970
-- Replies: OK current, longest, total, signed (1 if signed in today); PERIOD now_ms
-- Errors: INVALID period, day
local start_ms, end_ms = whole(ARGV[1], -1e9, 1e15), whole(ARGV[2], 1, 1e15)
local day = whole(ARGV[3], 0, 1e7)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not day then return refuse('day') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local kept = redis.call('HMGET', KEYS[1], 'last_day', 'current', 'longest', 'total')
local last_day, current = tonumber(kept[1] or -2), tonumber(kept[2] or 0)
if last_day < day - 1 then current = 0 end
return {'OK', 'current', current, 'longest', tonumber(kept[3] or 0), 'total',
  tonumber(kept[4] or 0), 'signed', last_day >= day and 1 or 0}
end
redis.register_function{function_name = 'russet_v1_sign_in_streak', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The days of a year on which a user signed in.
-- KEYS: 1 bitmap of the year
-- Replies: OK bitmap (the first day is the highest bit of the first byte)
return {'OK', 'bitmap', redis.call('GETRANGE', KEYS[1], 0, 45)}
end
redis.register_function{function_name = 'russet_v1_sign_in_year', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts a visitor of today, approximately.
-- KEYS: 1 visitors of the day
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 retention_ms; 4 visitor
-- Replies: NEW; SEEN; PERIOD now_ms
-- Errors: INVALID period, retention_ms
local start_ms, end_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e15)
local retention_ms = whole(ARGV[3], 1, 1e13)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not retention_ms then return refuse('retention_ms') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local is_new = redis.call('PFADD', KEYS[1], ARGV[4]) == 1
redis.call('PEXPIREAT', KEYS[1], end_ms + retention_ms)
return {is_new and 'NEW' or 'SEEN'}
end
redis.register_function{function_name = 'russet_v1_visitors_visit', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- How many visitors there were on some days, each counted once.
-- KEYS: 1... visitors of the days
-- Replies: OK visitors
-- Errors: INVALID days
if #KEYS < 1 or #KEYS > 100 then return refuse('days') end
return {'OK', 'visitors', redis.call('PFCOUNT', unpack(KEYS))}
end
redis.register_function{function_name = 'russet_v1_visitors_count', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 0 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads an entry. Who finds none, or one that is due, is elected to load it if nobody else is.
-- KEYS: 1 the entry; 2 the lock of its loader
-- ARGV: 1 token of the caller, empty to read only; 2 lock_ttl_ms; 3 tokens of its tags; 4 early_factor
-- Replies: HIT kind, payload, encoding, is_stale, is_elected, fresh_for_ms, load_ms; MISS is_elected, holder, retry_after_ms; CORRUPT
-- Errors: INVALID lock_ttl_ms, early_factor
local early = decimal(ARGV[4], 0, 1e9)
if not whole(ARGV[2], 1, 1e13) then return refuse('lock_ttl_ms') end
if not early then return refuse('early_factor') end
local entry = redis.pcall('HMGET', KEYS[1], 'kind', 'payload', 'fresh_until_ms', 'load_ms', 'tags',
  'encoding')
if entry.err then
  return {'CORRUPT'}
end
local fresh_until, load_ms = tonumber(entry[3] or 0), tonumber(entry[4] or 0)
if not fresh_until or not load_ms or (entry[1] and not (entry[2] and entry[6])) then
  return {'CORRUPT'}
end
local now = now_ms()
local is_there = entry[1] and entry[5] == ARGV[3]
local is_elected, holder, lock_ms = 0, '', 0
if ARGV[1] ~= '' and (not is_there or now + early * load_ms >= fresh_until) then
  if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
    is_elected = 1
  else
    holder = redis.call('GET', KEYS[2])
    lock_ms = math.max(redis.call('PTTL', KEYS[2]), 0)
    is_elected = holder == ARGV[1] and 1 or 0
  end
end
if not is_there then
  return {'MISS', 'is_elected', is_elected, 'holder', holder, 'retry_after_ms', lock_ms}
end
return {'HIT', 'kind', entry[1], 'payload', entry[2], 'encoding', entry[6],
  'is_stale', now >= fresh_until and 1 or 0, 'is_elected', is_elected,
  'fresh_for_ms', math.max(fresh_until - now, 0), 'load_ms', load_ms}
end
redis.register_function{function_name = 'russet_v1_cache_read', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Stores an entry: a loader's if it still has the lock, any if its version is not older. May run twice.
-- KEYS: 1 the entry; 2 the lock of its loader; 3 the newest version
-- ARGV: 1 token of the loader, empty for a writer; 2 kind, value or null; 3 payload; 4 encoding; 5 tokens of its tags; 6 fresh_ms; 7 keep_ms; 8 load_ms; 9 version, 0 for none
-- Replies: STORED; STALE
-- Errors: INVALID kind, fresh_ms, keep_ms, load_ms, version
local fresh_ms, keep_ms = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 1, 1e13)
local load_ms, version = whole(ARGV[8], 0, 1e13), whole(ARGV[9], 0, 2 ^ 53 - 1)
if ARGV[2] ~= 'value' and ARGV[2] ~= 'null' then return refuse('kind') end
if not fresh_ms then return refuse('fresh_ms') end
if not keep_ms or keep_ms < fresh_ms then return refuse('keep_ms') end
if not load_ms then return refuse('load_ms') end
if not version then return refuse('version') end
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then
  -- A repetition of what was stored by the same loader is as good as the first.
  local writer = redis.pcall('HGET', KEYS[1], 'writer')
  return {writer == ARGV[1] and 'STORED' or 'STALE'}
end
if version > 0 then
  if version < (tonumber(redis.call('GET', KEYS[3]) or 0) or 0) then
    -- A loader is done; that of another is left alone.
    if ARGV[1] ~= '' then redis.call('DEL', KEYS[2]) end
    return {'STALE'}
  end
  -- Known for a while longer than the entry, so that a late writer is refused.
  local known_ms = math.max(redis.call('PTTL', KEYS[3]), keep_ms + 600000)
  redis.call('SET', KEYS[3], ARGV[9], 'PX', known_ms)
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'kind', ARGV[2], 'payload', ARGV[3], 'encoding', ARGV[4], 'tags', ARGV[5],
  'fresh_until_ms', now_ms() + fresh_ms, 'load_ms', load_ms, 'writer', ARGV[1])
redis.call('PEXPIRE', KEYS[1], keep_ms)
return {'STORED'}
end
redis.register_function{function_name = 'russet_v1_cache_put', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 9 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes an entry and takes the lock from its loader, whose value is too old now. May run twice.
-- KEYS: 1 the entry; 2 the lock of its loader; 3 the newest version
-- ARGV: 1 version, 0 for none; 2 version_ttl_ms
-- Replies: DROPPED; NEWER
-- Errors: INVALID version, version_ttl_ms
local version = whole(ARGV[1], 0, 2 ^ 53 - 1)
if not version then return refuse('version') end
if not whole(ARGV[2], 1, 1e13) then return refuse('version_ttl_ms') end
if version > 0 then
  if version < (tonumber(redis.call('GET', KEYS[3]) or 0) or 0) then
    return {'NEWER'}
  end
  local known_ms = math.max(redis.call('PTTL', KEYS[3]), tonumber(ARGV[2]))
  redis.call('SET', KEYS[3], ARGV[1], 'PX', known_ms)
end
redis.call('DEL', KEYS[1], KEYS[2])
return {'DROPPED'}
end
redis.register_function{function_name = 'russet_v1_cache_drop', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Keeps the lock of a loader that is still at work.
-- KEYS: 1 the lock
-- ARGV: 1 token; 2 lock_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID lock_ttl_ms
if not whole(ARGV[2], 1, 1e13) then return refuse('lock_ttl_ms') end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'LOST'}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'KEPT'}
end
redis.register_function{function_name = 'russet_v1_cache_renew', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives up the lock of a loader, if it still has it.
-- KEYS: 1 the lock
-- ARGV: 1 token
-- Replies: RELEASED; LOST
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'LOST'}
end
redis.call('DEL', KEYS[1])
return {'RELEASED'}
end
redis.register_function{function_name = 'russet_v1_cache_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The token of a tag, made if there is none. Entries with another one are no longer valid.
-- KEYS: 1 the tag
-- ARGV: 1 token to use if there is none; 2 ttl_ms
-- Replies: OK token
-- Errors: INVALID token, ttl_ms
local ttl = whole(ARGV[2], 1, 1e13)
if ARGV[1] == '' then return refuse('token') end
if not ttl then return refuse('ttl_ms') end
local token = redis.call('GET', KEYS[1])
if not token then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
  return {'OK', 'token', ARGV[1]}
elseif redis.call('PTTL', KEYS[1]) < ttl / 2 then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return {'OK', 'token', token}
end
redis.register_function{function_name = 'russet_v1_cache_tag', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
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
end
redis.register_function{function_name = 'russet_v1_filter_add', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
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
end
redis.register_function{function_name = 'russet_v1_filter_complete', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 6 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
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
end
redis.register_function{function_name = 'russet_v1_filter_has', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts in the present window, which begins at a multiple of its length, and forgets old windows.
-- KEYS: 1 request marker; 2 the counter
-- ARGV: 1 request_ttl_ms; 2 by, which may be negative; 3 window_ms; 4 keep, how many windows with the present one
-- Replies: OK count, window (its number), rest_ms (until it ends)
-- Errors: INVALID by, window_ms, keep; OVERFLOW
local by = whole(ARGV[2], -1e15, 1e15)
local window, keep = whole(ARGV[3], 1, 1e12), whole(ARGV[4], 1, 400)
if not by or by == 0 then return refuse('by') end
if not window then return refuse('window_ms') end
if not keep then return refuse('keep') end
local now = now_ms()
local index = math.floor(now / window)
local name = string.format('%.0f', index)
local count = (tonumber(redis.call('HGET', KEYS[2], name)) or 0) + by
-- Beyond it a double skips numbers.
if count > 9e15 or count < -9e15 then return redis.error_reply('OVERFLOW the count') end
if redis.call('HINCRBY', KEYS[2], name, by) == by and redis.call('HLEN', KEYS[2]) > keep then
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if tonumber(field) <= index - keep then redis.call('HDEL', KEYS[2], field) end
  end
end
local ttl = (index + keep) * window - now
if redis.call('PTTL', KEYS[2]) < ttl then redis.call('PEXPIRE', KEYS[2], ttl) end
return {'OK', 'count', count, 'window', index, 'rest_ms', (index + 1) * window - now}
end
redis.register_function{function_name = 'russet_v1_counter_add', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads what was counted in the present window, or in one before.
-- KEYS: 1 the counter
-- ARGV: 1 window_ms; 2 ago, 0 for the present window
-- Replies: OK count, window (its number), rest_ms (until the present window ends)
-- Errors: INVALID window_ms, ago
local window, ago = whole(ARGV[1], 1, 1e12), whole(ARGV[2], 0, 400)
if not window then return refuse('window_ms') end
if not ago then return refuse('ago') end
local now = now_ms()
local index = math.floor(now / window)
local count = tonumber(redis.call('HGET', KEYS[1], string.format('%.0f', index - ago))) or 0
return {'OK', 'count', count, 'window', index - ago, 'rest_ms', (index + 1) * window - now}
end
redis.register_function{function_name = 'russet_v1_counter_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Adds to integers of declared widths that are packed into one string; all or none.
-- KEYS: 1 request marker; 2 the string
-- ARGV: 1 request_ttl_ms; 2 ttl_ms, from the first write; 3 overflow (WRAP, SAT or FAIL); then three per change:
--   type (u1 to u53, i1 to i53), offset in bits, by
-- Replies: OK values; OVERFLOW change (the number of the first that does not fit, with FAIL)
-- Errors: INVALID ttl_ms, overflow, changes, type, offset, by
local ttl, overflow = whole(ARGV[2], 1, 1e13), ARGV[3]
local changes = (#ARGV - 3) / 3
if not ttl then return refuse('ttl_ms') end
if overflow ~= 'WRAP' and overflow ~= 'SAT' and overflow ~= 'FAIL' then return refuse('overflow') end
if not whole(changes, 1, 256) then return refuse('changes') end
for change = 1, changes do
  local at = 3 * change
  local sign, width = string.match(ARGV[at + 1], '^([ui])(%d+)$')
  if not sign or not whole(width, 1, 53) then return refuse('type') end
  if not whole(ARGV[at + 2], 0, 524288) then return refuse('offset') end
  if not whole(ARGV[at + 3], -9e15, 9e15) then return refuse('by') end
end
local is_there = redis.call('EXISTS', KEYS[2]) == 1
local values = {}
for change = 1, changes do
  local at = 3 * change
  local value = redis.call('BITFIELD', KEYS[2], 'OVERFLOW', overflow,
    'INCRBY', ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])[1]
  if not value then
    -- Changes may overlap: only here is it known that one does not fit. Those before it are undone.
    for undone = change - 1, 1, -1 do
      at = 3 * undone
      redis.call('BITFIELD', KEYS[2], 'OVERFLOW', 'FAIL',
        'INCRBY', ARGV[at + 1], ARGV[at + 2], 0 - ARGV[at + 3])
    end
    if not is_there then redis.call('DEL', KEYS[2]) end
    return {'OVERFLOW', 'change', change}, true
  end
  values[change] = value
end
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIRE', KEYS[2], ttl) end
return {'OK', 'values', values}
end
redis.register_function{function_name = 'russet_v1_counter_packed', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reserves a block of numbers that nobody else gets: a millisecond and positions within it.
-- KEYS: 1 the generator
-- ARGV: 1 count, how many; 2 server, the run_id of the server that runs this; 3 margin_ms, by how much the time
--   jumps ahead when another server has taken over; 4 ttl_ms, longer than the margin
-- Replies: OK time_ms, first, count. An id is (time_ms - 1735689600000) * 2^22 + position, for positions from first,
--   each replaced by (position * 2654435 + time_ms * 40503) mod 2^22 so that neighbours do not show the volume
-- Errors: INVALID count, server, margin_ms, ttl_ms; OVERFLOW (the time is past the year 2094)
-- Notes: a second run reserves a second block; gaps are harmless.
local count, server = whole(ARGV[1], 1, 4096), ARGV[2]
local margin, ttl = whole(ARGV[3], 0, 1e9), whole(ARGV[4], 1, 1e13)
if not count then return refuse('count') end
if not server or #server == 0 or #server > 64 then return refuse('server') end
if not margin then return refuse('margin_ms') end
if not ttl or ttl <= margin then return refuse('ttl_ms') end
local stored = redis.call('HMGET', KEYS[1], 'time', 'next', 'server')
local time, first = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0
local now = now_ms()
if stored[3] ~= server then
  -- Another server may have given out more than this one knows of, by a clock that was ahead.
  time, first = math.max(time, now) + margin, 0
elseif now > time then
  time, first = now, 0
elseif first + count > 4194304 then
  -- The millisecond is used up: the next one is taken before its time.
  time, first = time + 1, 0
end
if time - 1735689600000 >= 2199023255552 then return redis.error_reply('OVERFLOW the time') end
redis.call('HSET', KEYS[1], 'time', string.format('%.0f', time), 'next', first + count, 'server', server)
redis.call('PEXPIRE', KEYS[1], math.max(ttl, time - now + ttl))
return {'OK', 'time_ms', time, 'first', first, 'count', count}
end
redis.register_function{function_name = 'russet_v1_counter_ids', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Changes what is stored of a flag, raises the version of all flags and writes who did it.
-- KEYS: 1 the flags; 2 the audit
-- ARGV: 1 flag; 2 actor; 3 what was done; 4 ttl_ms; 5 flags_max; 6 audit_max; 7 whether it may
-- create the flag, 1 or 0; then attributes and values, an empty value removing the attribute. A flag
-- is there as long as it has the attribute switch
-- Replies: CHANGED version; UNCHANGED version; MISSING version; FULL version
-- Errors: INVALID flag, ttl_ms, flags_max, audit_max, attributes
local flag = ARGV[1]
local ttl_ms, flags_max = whole(ARGV[4], 1, 1e13), whole(ARGV[5], 1, 10000)
local audit_max = whole(ARGV[6], 1, 10000)
if not string.find(flag, '^[%w%-%._]+$') or #flag > 64 then
  return refuse('flag')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not flags_max then
  return refuse('flags_max')
elseif not audit_max then
  return refuse('audit_max')
elseif #ARGV % 2 == 0 or #ARGV > 27 then
  return refuse('attributes')
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('LLEN', KEYS[2])
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or 0)
local exists = redis.call('HEXISTS', KEYS[1], flag .. ':switch') == 1
if not exists then
  if ARGV[7] ~= '1' then
    return {'MISSING', 'version', version}
  elseif tonumber(redis.call('HGET', KEYS[1], 'count') or 0) >= flags_max then
    return {'FULL', 'version', version}
  end
end
local is_changed, is_switched = not exists, exists
for index = 8, #ARGV, 2 do
  is_switched = is_switched or ARGV[index] == 'switch' and ARGV[index + 1] ~= ''
  local before = redis.call('HGET', KEYS[1], flag .. ':' .. ARGV[index]) or ''
  is_changed = is_changed or before ~= ARGV[index + 1]
end
-- Without one it is no flag, and nobody would count it.
if not is_switched then
  return refuse('attributes')
end
if not is_changed then
  return {'UNCHANGED', 'version', version}
end
for index = 8, #ARGV, 2 do
  if ARGV[index + 1] == '' then
    redis.call('HDEL', KEYS[1], flag .. ':' .. ARGV[index])
  else
    redis.call('HSET', KEYS[1], flag .. ':' .. ARGV[index], ARGV[index + 1])
  end
end
local remains = redis.call('HEXISTS', KEYS[1], flag .. ':switch') == 1
if remains ~= exists then
  redis.call('HINCRBY', KEYS[1], 'count', remains and 1 or -1)
end
-- Moments, but never the same twice and never back: flags that were lost and made anew have another
-- version than those that a reader may still know.
local now = now_ms()
version = math.max(now, version + 1)
redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version))
redis.call('PEXPIRE', KEYS[1], ttl_ms)
redis.call('LPUSH', KEYS[2], cmsgpack.pack({now, ARGV[2], ARGV[3], flag, version}))
redis.call('LTRIM', KEYS[2], 0, audit_max - 1)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'CHANGED', 'version', version}
end
redis.register_function{function_name = 'russet_v1_flag_change', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 7 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads all flags, unless they are as one knows them.
-- KEYS: 1 the flags
-- ARGV: 1 the version that one knows, 0 for none
-- Replies: UNCHANGED; FLAGS version, fields
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version == ARGV[1] and version ~= '0' then
  return {'UNCHANGED'}
end
return {'FLAGS', 'version', tonumber(version), 'fields', redis.call('HGETALL', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_flag_snapshot', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads one flag, and whether the subject is in one of its groups.
-- KEYS: 1 the flags; 2 the members
-- ARGV: 1 flag; 2 subject
-- Replies: FLAG switch, killed, rollout, rules, is_member; MISSING
local flag = ARGV[1]
local found = redis.call('HMGET', KEYS[1], flag .. ':switch', flag .. ':killed',
  flag .. ':rollout', flag .. ':rules', flag .. ':groups')
if not found[1] then
  return {'MISSING'}
end
local is_member = 0
for group in string.gmatch(found[5] or '', '[^,]+') do
  if is_member == 0 then
    is_member = redis.call('SISMEMBER', KEYS[2], group .. ':' .. ARGV[2])
  end
end
return {'FLAG', 'switch', found[1], 'killed', found[2] or '', 'rollout', found[3] or '',
  'rules', found[4] or '', 'is_member', is_member}
end
redis.register_function{function_name = 'russet_v1_flag_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads the latest changes of flags, the last one first.
-- KEYS: 1 the audit
-- ARGV: 1 limit
-- Replies: OK entries, each of time in milliseconds, actor, what was done, flag, version
-- Errors: INVALID limit
local limit = whole(ARGV[1], 1, 10000)
if not limit then
  return refuse('limit')
end
local entries = {}
for index, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, limit - 1)) do
  entries[index] = cmsgpack.unpack(entry)
end
return {'OK', 'entries', entries}
end
redis.register_function{function_name = 'russet_v1_flag_audit', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Adds a subject to a group.
-- KEYS: 1 the members
-- ARGV: 1 group; 2 subject; 3 ttl_ms; 4 members_max
-- Replies: ADDED; ALREADY; FULL
-- Errors: INVALID group, subject, ttl_ms, members_max
local ttl_ms, members_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e6)
if not string.find(ARGV[1], '^[%w%-%._]+$') then
  return refuse('group')
elseif ARGV[2] == '' then
  return refuse('subject')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not members_max then
  return refuse('members_max')
end
local member = ARGV[1] .. ':' .. ARGV[2]
if redis.call('SISMEMBER', KEYS[1], member) == 1 then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
  return {'ALREADY'}
elseif redis.call('SCARD', KEYS[1]) >= members_max then
  return {'FULL'}
end
redis.call('SADD', KEYS[1], member)
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'ADDED'}
end
redis.register_function{function_name = 'russet_v1_flag_member_add', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Claims a request for one owner, or says what became of it. Same owner, same claim: it may run twice.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 fingerprint of the request; 3 claim_ttl_ms; 4 result_ttl_ms
-- Replies: CLAIMED attempt, is_takeover; REPLAY body; FAILED reason; IN_FLIGHT retry_after_ms; MISMATCH
-- Errors: INVALID owner, claim_ttl_ms, result_ttl_ms
local claim_ttl, result_ttl = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('owner') end
if not claim_ttl then return refuse('claim_ttl_ms') end
if not result_ttl or result_ttl < claim_ttl then return refuse('result_ttl_ms') end
local now = now_ms()
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'fingerprint', 'deadline_ms',
  'attempt_count', 'is_takeover', 'created_at_ms', 'claim_ttl_ms')
local state = record[1]
if state and record[3] ~= ARGV[2] then
  return {'MISMATCH'}
elseif state == 'COMPLETED' then
  return {'REPLAY', 'body', redis.call('HGET', KEYS[1], 'body')}
elseif state == 'FAILED_FINAL' then
  return {'FAILED', 'reason', redis.call('HGET', KEYS[1], 'reason')}
end
local is_running = state == 'IN_PROGRESS'
local is_own = is_running and record[2] == ARGV[1]
local deadline = tonumber(record[4] or 0) or 0
if is_running and not is_own and now < deadline then
  local lent = tonumber(record[8] or '') or claim_ttl
  if deadline - now > lent then
    -- The clock was set back: nobody has more time than it was given.
    deadline = now + lent
    redis.call('HSET', KEYS[1], 'deadline_ms', deadline)
  end
  return {'IN_FLIGHT', 'retry_after_ms', deadline - now}
end
local attempt, is_takeover = tonumber(record[5] or 0) or 0, record[6] == '1'
if not is_own then
  attempt, is_takeover = attempt + 1, is_running
end
redis.call('HSET', KEYS[1], 'schema_version', 1, 'state', 'IN_PROGRESS', 'owner', ARGV[1],
  'fingerprint', ARGV[2], 'deadline_ms', now + claim_ttl, 'claim_ttl_ms', claim_ttl,
  'attempt_count', attempt,
  'is_takeover', is_takeover and 1 or 0, 'created_at_ms', record[7] or now, 'updated_at_ms', now)
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'CLAIMED', 'attempt', attempt, 'is_takeover', is_takeover and 1 or 0}
end
redis.register_function{function_name = 'russet_v1_idempotency_claim', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Moves the deadline of a claim on, for its owner only.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 claim_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID claim_ttl_ms
local claim_ttl = whole(ARGV[2], 1, 1e13)
if not claim_ttl then return refuse('claim_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[1] ~= 'IN_PROGRESS' or record[2] ~= ARGV[1] then
  return {'LOST'}
end
local now = now_ms()
redis.call('HSET', KEYS[1], 'deadline_ms', now + claim_ttl, 'claim_ttl_ms', claim_ttl,
  'updated_at_ms', now)
if redis.call('PTTL', KEYS[1]) < claim_ttl then
  redis.call('PEXPIRE', KEYS[1], claim_ttl)
end
return {'KEPT'}
end
redis.register_function{function_name = 'russet_v1_idempotency_renew', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Stores the response of a request, for the owner of its claim only. A repetition changes nothing.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 body; 3 result_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID result_ttl_ms
local result_ttl = whole(ARGV[3], 1, 1e13)
if not result_ttl then return refuse('result_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[2] ~= ARGV[1] then
  return {'LOST'}
elseif record[1] == 'COMPLETED' then
  return {'KEPT'}
elseif record[1] ~= 'IN_PROGRESS' then
  return {'LOST'}
end
redis.call('HSET', KEYS[1], 'state', 'COMPLETED', 'body', ARGV[2], 'updated_at_ms', now_ms())
redis.call('HDEL', KEYS[1], 'deadline_ms', 'reason')
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'KEPT'}
end
redis.register_function{function_name = 'russet_v1_idempotency_complete', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Records why a request failed, for the owner of its claim only, and whether it may be tried again.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 FAILED_RETRYABLE or FAILED_FINAL; 3 reason; 4 result_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID kind, result_ttl_ms
local result_ttl = whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'FAILED_RETRYABLE' and ARGV[2] ~= 'FAILED_FINAL' then return refuse('kind') end
if not result_ttl then return refuse('result_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[2] ~= ARGV[1] then
  return {'LOST'}
elseif record[1] == ARGV[2] then
  return {'KEPT'}
elseif record[1] ~= 'IN_PROGRESS' then
  return {'LOST'}
end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'reason', ARGV[3], 'updated_at_ms', now_ms())
redis.call('HDEL', KEYS[1], 'deadline_ms')
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'KEPT'}
end
redis.register_function{function_name = 'russet_v1_idempotency_fail', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Says where a request stands, and changes nothing.
-- KEYS: 1 the record
-- ARGV: none
-- Replies: ABSENT; IN_PROGRESS attempt, retry_after_ms; COMPLETED attempt; FAILED_RETRYABLE attempt, reason; FAILED_FINAL attempt, reason
local record = redis.call('HMGET', KEYS[1], 'state', 'attempt_count', 'deadline_ms', 'reason',
  'claim_ttl_ms')
local state, attempt = record[1], tonumber(record[2] or 0) or 0
if not state then
  return {'ABSENT'}
elseif state == 'IN_PROGRESS' then
  local left = math.max((tonumber(record[3] or 0) or 0) - now_ms(), 0)
  -- Nobody has more time than it was given, though the clock was set back.
  left = math.min(left, tonumber(record[5] or '') or left)
  return {state, 'attempt', attempt, 'retry_after_ms', left}
end
return {state, 'attempt', attempt, 'reason', record[4]}
end
redis.register_function{function_name = 'russet_v1_idempotency_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Sets a marker that only the first can set. The same token sets it again: it may run twice.
-- KEYS: 1 the marker
-- ARGV: 1 token; 2 ttl_ms
-- Replies: CLAIMED; EXISTS expires_in_ms, has_ttl (0 if somebody has taken its TTL away)
-- Errors: INVALID token, ttl_ms
if ARGV[1] == '' then return refuse('token') end
if not whole(ARGV[2], 1, 1e13) then return refuse('ttl_ms') end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {'CLAIMED'}
elseif redis.call('GET', KEYS[1]) == ARGV[1] then
  return {'CLAIMED'}
end
local left = redis.call('PTTL', KEYS[1])
return {'EXISTS', 'expires_in_ms', math.max(left, 0), 'has_ttl', left == -1 and 0 or 1}
end
redis.register_function{function_name = 'russet_v1_idempotency_mark', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes a lease that is free, or takes it again for the token that has it.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms, how long the fencing number outlives the lease
-- Replies: HELD fence; BUSY retry_after_ms; RELEASED, the token has had it and gave it back
-- Errors: INVALID token, ttl_ms, memory_ms; CORRUPT
local token = ARGV[1]
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
if token == '' then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
-- Time, and behind it a counter if the clock stands still or steps back.
local fence = now_us
local stored = redis.call('GET', KEYS[1])
if stored then
  local last, until_us, lent_ms, holder = string.match(stored, '^(%d+) (%d+) (%d+) (.+)$')
  if not last then
    return redis.error_reply('CORRUPT lease')
  end
  local is_held = tonumber(until_us) > now_us
  if is_held and holder ~= token then
    local left_ms = math.ceil((until_us - now_us) / 1000)
    if left_ms > tonumber(lent_ms) then
      -- The clock was set back: nobody has more time than it was given.
      left_ms = tonumber(lent_ms)
      redis.call('SET', KEYS[1], string.format('%s %.0f %s ', last, now_us + left_ms * 1000, lent_ms)
        .. holder, 'PX', left_ms + memory_ms)
    end
    return {'BUSY', 'retry_after_ms', left_ms}
  elseif holder == token and until_us == '0' then
    return {'RELEASED'}
  end
  fence = is_held and tonumber(last) or math.max(now_us, last + 1)
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, now_us + ttl_ms * 1000, ttl_ms)
  .. token, 'PX', ttl_ms + memory_ms)
return {'HELD', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_acquire', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives the holder of a lease more time. It never shortens a lease and never brings one back.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 fence_min, the fencing number becomes at least this
-- Replies: RENEWED fence; NOT_HELD
-- Errors: INVALID ttl_ms, memory_ms, fence_min
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local fence_min = whole(ARGV[4], 0, 9e15)
if not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not fence_min then
  return refuse('fence_min')
end
local stored = redis.call('GET', KEYS[1])
local fence, until_us, lent_ms, holder =
  string.match(stored or '', '^(%d+) (%d+) (%d+) (.+)$')
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if holder ~= ARGV[1] or tonumber(until_us) <= now_us then
  return {'NOT_HELD'}
end
fence = math.max(fence, fence_min)
-- What it was given before may be longer; but if the clock was set back, not longer than that.
local left_ms = math.min(math.ceil((until_us - now_us) / 1000), tonumber(lent_ms))
if left_ms < ttl_ms then
  left_ms, until_us = ttl_ms, now_us + ttl_ms * 1000
else
  until_us = math.min(until_us, now_us + left_ms * 1000)
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, until_us, left_ms) .. holder,
  'PX', left_ms + memory_ms)
return {'RENEWED', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_renew', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a lease back, if it is the token's. The fencing number is remembered for a while.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED, nobody had it since; NOT_HELD, another had it since, or it is forgotten
-- Errors: INVALID memory_ms
local memory_ms = whole(ARGV[2], 1, 1e12)
if not memory_ms then
  return refuse('memory_ms')
end
local stored = redis.call('GET', KEYS[1])
local fence, until_us, holder = string.match(stored or '', '^(%d+) (%d+) %d+ (.+)$')
if holder ~= ARGV[1] then
  return {'NOT_HELD'}
elseif until_us == '0' then
  return {'RELEASED'}
end
redis.call('SET', KEYS[1], fence .. ' 0 0 ' .. holder, 'PX', memory_ms)
return {'RELEASED'}
end
redis.register_function{function_name = 'russet_v1_lease_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Says whether a lease is held, by whoever.
-- KEYS: 1 the lease
-- Replies: FREE; HELD fence, remaining_ms
local stored = redis.call('GET', KEYS[1])
local fence, until_us, lent_ms = string.match(stored or '', '^(%d+) (%d+) (%d+) ')
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if not fence or tonumber(until_us) <= now_us then
  return {'FREE'}
end
local left_ms = math.min(math.ceil((until_us - now_us) / 1000), tonumber(lent_ms))
return {'HELD', 'fence', tonumber(fence), 'remaining_ms', left_ms}
end
redis.register_function{function_name = 'russet_v1_lease_peek', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts the holders, or waiters, whose time is not over.
-- KEYS: 1 a sorted set of until when each lives, in milliseconds
-- Replies: OK count
return {'OK', 'count', redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now_ms()), '+inf')}
end
redis.register_function{function_name = 'russet_v1_lease_live', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes a lease in the order of arrival. Waiters that have not asked again within their patience
-- are dead: all of them are passed over at once.
-- KEYS: 1 the lease; 2 the queue; 3 until when each waiter is alive
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 patience_ms, 0 does not queue; 5 waiters_max
-- Replies: HELD fence; BUSY retry_after_ms, ahead; FULL; RELEASED
-- Errors: INVALID token, ttl_ms, memory_ms, patience_ms, waiters_max; CORRUPT
local token = ARGV[1]
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local patience_ms, waiters_max = whole(ARGV[4], 0, 1e9), whole(ARGV[5], 1, 1e5)
if token == '' then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not patience_ms then
  return refuse('patience_ms')
elseif not waiters_max then
  return refuse('waiters_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

local fence, until_us, is_own = now_us, 0, false
local stored = redis.call('GET', KEYS[1])
if stored then
  local last, held_until, lent_ms, holder = string.match(stored, '^(%d+) (%d+) (%d+) (.+)$')
  if not last then
    return redis.error_reply('CORRUPT lease')
  elseif holder == token and held_until == '0' then
    return {'RELEASED'}
  end
  until_us = tonumber(held_until)
  if until_us > now_us + lent_ms * 1000 then
    -- The clock was set back: nobody has more time than it was given.
    until_us = now_us + lent_ms * 1000
    redis.call('SET', KEYS[1], string.format('%s %.0f %s ', last, until_us, lent_ms) .. holder,
      'PX', lent_ms + memory_ms)
  end
  is_own = holder == token and until_us > now_us
  fence = is_own and tonumber(last) or math.max(now_us, last + 1)
end

-- The dead go, a thousand with each command.
repeat
  local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now_ms, 'LIMIT', 0, 1000)
  if #dead > 0 then
    redis.call('ZREM', KEYS[2], unpack(dead))
    redis.call('ZREM', KEYS[3], unpack(dead))
  end
until #dead < 1000

-- So do those of whom nothing is known, since a key was lost. After the clock was set back the first
-- has as much time as any other.
local patience_max = 10 * math.max(patience_ms, 3000)
local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
while head and head ~= token do
  local alive_until = redis.call('ZSCORE', KEYS[3], head)
  if alive_until then
    if tonumber(alive_until) > now_ms + patience_max then
      redis.call('ZADD', KEYS[3], now_ms + patience_max / 10, head)
    end
    break
  end
  redis.call('ZREM', KEYS[2], head)
  head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end
if is_own or until_us <= now_us and (not head or head == token) then
  redis.call('ZREM', KEYS[2], token)
  redis.call('ZREM', KEYS[3], token)
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, now_us + ttl_ms * 1000, ttl_ms)
    .. token, 'PX', ttl_ms + memory_ms)
  return {'HELD', 'fence', fence}
end

local ahead = redis.call('ZRANK', KEYS[2], token)
if patience_ms > 0 then
  if not ahead then
    ahead = redis.call('ZCARD', KEYS[2])
    if ahead >= waiters_max then
      return {'FULL'}
    end
    -- Behind everyone, whatever the clock does.
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    redis.call('ZADD', KEYS[2], math.max(now_us, (last[2] or 0) + 1), token)
  end
  redis.call('ZADD', KEYS[3], now_ms + patience_ms, token)
  for index = 2, 3 do
    if redis.call('PTTL', KEYS[index]) < patience_ms then
      redis.call('PEXPIRE', KEYS[index], patience_ms)
    end
  end
end
local wait_ms = math.max(0, math.ceil((until_us - now_us) / 1000))
return {'BUSY', 'retry_after_ms', wait_ms, 'ahead', ahead or redis.call('ZCARD', KEYS[2])}
end
redis.register_function{function_name = 'russet_v1_lease_fair_acquire', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a lease back, if it is the token's, and leaves the queue if the token still waits.
-- KEYS: 1 the lease; 2 the queue; 3 until when each waiter is alive
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED, nobody had it since; NOT_HELD
-- Errors: INVALID memory_ms
local memory_ms = whole(ARGV[2], 1, 1e12)
if not memory_ms then
  return refuse('memory_ms')
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
local stored = redis.call('GET', KEYS[1])
local fence, until_us, holder = string.match(stored or '', '^(%d+) (%d+) %d+ (.+)$')
if holder ~= ARGV[1] then
  return {'NOT_HELD'}
elseif until_us == '0' then
  return {'RELEASED'}
end
redis.call('SET', KEYS[1], fence .. ' 0 0 ' .. holder, 'PX', memory_ms)
return {'RELEASED'}
end
redis.register_function{function_name = 'russet_v1_lease_fair_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes the read side of a read-write lease, beside other readers. Reentrant: an owner may have
-- many holds, and may read while it writes.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold, with a colon between; 2 ttl_ms; 3 memory_ms; 4 holds_max
-- Replies: HELD fence; BUSY retry_after_ms; FULL
-- Errors: INVALID token, ttl_ms, memory_ms, holds_max
local token = ARGV[1]
local owner = string.match(token, '^([^:]+):[^:]+$')
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local holds_max = whole(ARGV[4], 1, 10000)
if not owner then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not holds_max then
  return refuse('holds_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)

local function is_own(hold)
  return string.sub(hold, 1, #owner + 1) == owner .. ':'
end
-- All writers are of one owner.
local writer = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if writer[1] and not is_own(writer[1]) then
  return {'BUSY', 'retry_after_ms', writer[2] - now_ms}
end
-- A writer that waits comes before readers who have nothing yet.
local waiting = redis.call('GET', KEYS[3])
if waiting and not is_own(waiting) and not writer[1] then
  local has_hold = false
  for _, hold in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    has_hold = has_hold or is_own(hold)
  end
  if not has_hold then
    return {'BUSY', 'retry_after_ms', math.max(0, redis.call('PTTL', KEYS[3]))}
  end
end
if redis.call('ZCARD', KEYS[2]) >= holds_max and not redis.call('ZSCORE', KEYS[2], token) then
  return {'FULL'}
end
local fence = math.max(now_us, (redis.call('GET', KEYS[4]) or 0) + 1)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
redis.call('ZADD', KEYS[2], 'GT', now_ms + ttl_ms, token)
if redis.call('PTTL', KEYS[2]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'HELD', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_read', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes the write side of a read-write lease, which only one owner has. Reentrant: that owner may
-- have many holds, and may write if it is the only reader.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold, with a colon between; 2 ttl_ms; 3 memory_ms; 4 holds_max; 5 intent_ms,
-- how long new readers wait for this writer if it can't write now, 0 lets them in
-- Replies: HELD fence; BUSY retry_after_ms; FULL
-- Errors: INVALID token, ttl_ms, memory_ms, holds_max, intent_ms
local token = ARGV[1]
local owner = string.match(token, '^([^:]+):[^:]+$')
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local holds_max, intent_ms = whole(ARGV[4], 1, 10000), whole(ARGV[5], 0, 1e9)
if not owner then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not holds_max then
  return refuse('holds_max')
elseif not intent_ms then
  return refuse('intent_ms')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)

local function is_own(hold)
  return string.sub(hold, 1, #owner + 1) == owner .. ':'
end
-- Until when the first hold of another owner is, and whether this owner has one.
local blocked_ms, has_hold
local function look_at(holds)
  for index = 1, #holds, 2 do
    if is_own(holds[index]) then
      has_hold = true
    elseif not blocked_ms then
      blocked_ms = holds[index + 1] - now_ms
    end
  end
end
look_at(redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'))
look_at(redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'))
local waiting = redis.call('GET', KEYS[3])
if waiting and not is_own(waiting) and not has_hold and not blocked_ms then
  blocked_ms = math.max(0, redis.call('PTTL', KEYS[3]))
end
if blocked_ms then
  if intent_ms > 0 and (not waiting or is_own(waiting)) then
    redis.call('SET', KEYS[3], token, 'PX', intent_ms)
  end
  return {'BUSY', 'retry_after_ms', blocked_ms}
end
if redis.call('ZCARD', KEYS[1]) >= holds_max and not redis.call('ZSCORE', KEYS[1], token) then
  return {'FULL'}
end
if waiting == token then
  redis.call('DEL', KEYS[3])
end
local fence = math.max(now_us, (redis.call('GET', KEYS[4]) or 0) + 1)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
redis.call('ZADD', KEYS[1], 'GT', now_ms + ttl_ms, token)
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
return {'HELD', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_write', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a hold of a read-write lease more time, the others none. It never brings one back.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold; 2 ttl_ms; 3 memory_ms; 4 fence_min
-- Replies: RENEWED fence; NOT_HELD
-- Errors: INVALID ttl_ms, memory_ms, fence_min
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local fence_min = whole(ARGV[4], 0, 9e15)
if not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not fence_min then
  return refuse('fence_min')
end
local now = now_ms()
-- Keys that are not what they should be fail here, before anything is written.
local last = redis.call('GET', KEYS[4])
redis.call('ZCARD', KEYS[2])
local is_held = false
for index = 1, 2 do
  local until_ms = redis.call('ZSCORE', KEYS[index], ARGV[1])
  if until_ms and tonumber(until_ms) > now then
    is_held = true
    redis.call('ZADD', KEYS[index], 'GT', now + ttl_ms, ARGV[1])
    if redis.call('PTTL', KEYS[index]) < ttl_ms then
      redis.call('PEXPIRE', KEYS[index], ttl_ms)
    end
  end
end
if not is_held then
  return {'NOT_HELD'}
end
-- If the number was lost it is the end of this millisecond, which is higher.
local fence = math.max(tonumber(last) or (now + 1) * 1000, fence_min)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
return {'RENEWED', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_hold_renew', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a hold of a read-write lease back, and the place of a writer that waits.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold; 2 memory_ms
-- Replies: RELEASED; NOT_HELD, it had run out or was given back before
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[1])
redis.call('ZCARD', KEYS[2])
if redis.call('GET', KEYS[3]) == ARGV[1] then
  redis.call('DEL', KEYS[3])
end
local now = now_ms()
local is_held = false
for index = 1, 2 do
  local until_ms = redis.call('ZSCORE', KEYS[index], ARGV[1])
  if until_ms then
    is_held = is_held or tonumber(until_ms) > now
    redis.call('ZREM', KEYS[index], ARGV[1])
  end
end
return {is_held and 'RELEASED' or 'NOT_HELD'}
end
redis.register_function{function_name = 'russet_v1_lease_hold_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- A token that ends with an asterisk and a number takes so many permits: its members are the token, and
-- the token with a number behind it.
local function members_of(token)
  local weight = string.match(token, '%*(%d+)$')
  if not weight then return {token} end
  weight = whole(weight, 1, 1000)
  if not weight then return nil end
  local members = {token}
  for index = 2, weight do members[index] = token .. ':' .. index end
  return members
end
local function step(KEYS, ARGV)
-- Takes one of a number of permits, each of which runs out by itself, or several.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token, with an asterisk and how many behind it for more than one permit; 2 ttl_ms; 3 memory_ms; 4 permits_max
-- Replies: HELD fence; BUSY retry_after_ms
-- Errors: INVALID token, ttl_ms, memory_ms, permits_max
local token = ARGV[1]
local members = members_of(token)
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local permits_max = whole(ARGV[4], 1, 1e6)
if token == '' or not members then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not permits_max or #members > permits_max then
  return refuse('permits_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
local missing = redis.call('ZCARD', KEYS[1]) + #members - permits_max
if missing > 0 and not redis.call('ZSCORE', KEYS[1], token) then
  -- Until so many have run out.
  local last = math.min(missing, redis.call('ZCARD', KEYS[1])) - 1
  local entry = redis.call('ZRANGE', KEYS[1], last, last, 'WITHSCORES')
  return {'BUSY', 'retry_after_ms', entry[2] - now_ms}
end
local fence = math.max(now_us, (redis.call('GET', KEYS[2]) or 0) + 1)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
for _, member in ipairs(members) do
  redis.call('ZADD', KEYS[1], 'GT', now_ms + ttl_ms, member)
end
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
return {'HELD', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_permit_acquire', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- A token that ends with an asterisk and a number takes so many permits: its members are the token, and
-- the token with a number behind it.
local function members_of(token)
  local weight = string.match(token, '%*(%d+)$')
  if not weight then return {token} end
  weight = whole(weight, 1, 1000)
  if not weight then return nil end
  local members = {token}
  for index = 2, weight do members[index] = token .. ':' .. index end
  return members
end
local function step(KEYS, ARGV)
-- Gives the holder of permits more time. It never brings a permit back.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 fence_min
-- Replies: RENEWED fence; NOT_HELD
-- Errors: INVALID token, ttl_ms, memory_ms, fence_min
local members = members_of(ARGV[1])
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local fence_min = whole(ARGV[4], 0, 9e15)
if not members then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not fence_min then
  return refuse('fence_min')
end
local now = now_ms()
local until_ms = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not until_ms or tonumber(until_ms) <= now then
  return {'NOT_HELD'}
end
-- A number that is none fails here, before anything is written.
local last = redis.call('GET', KEYS[2])
for _, member in ipairs(members) do
  redis.call('ZADD', KEYS[1], 'GT', now + ttl_ms, member)
end
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
-- If the number was lost it is the end of this millisecond, which is higher.
local fence = math.max(tonumber(last) or (now + 1) * 1000, fence_min)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
return {'RENEWED', 'fence', fence}
end
redis.register_function{function_name = 'russet_v1_lease_permit_renew', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- A token that ends with an asterisk and a number takes so many permits: its members are the token, and
-- the token with a number behind it.
local function members_of(token)
  local weight = string.match(token, '%*(%d+)$')
  if not weight then return {token} end
  weight = whole(weight, 1, 1000)
  if not weight then return nil end
  local members = {token}
  for index = 2, weight do members[index] = token .. ':' .. index end
  return members
end
local function step(KEYS, ARGV)
-- Gives permits back, if they are the token's.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED; NOT_HELD, they had run out or were given back before
-- Errors: INVALID token
local members = members_of(ARGV[1])
if not members then return refuse('token') end
local until_ms = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not until_ms then
  return {'NOT_HELD'}
end
redis.call('ZREM', KEYS[1], unpack(members))
if tonumber(until_ms) <= now_ms() then
  return {'NOT_HELD'}
end
return {'RELEASED'}
end
redis.register_function{function_name = 'russet_v1_lease_permit_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Writes a value for the holder of a lease, unless a later holder, or a later write of the same
-- one, was there before.
-- KEYS: 1 the record
-- ARGV: 1 fence; 2 turn, which write of the holder it is; 3 ttl_ms; 4 whether there is a value, 1
-- or 0; 5 the value
-- Replies: WRITTEN; STALE fence, turn
-- Errors: INVALID fence, turn, ttl_ms, has_value
local fence, turn = whole(ARGV[1], 1, 9e15), whole(ARGV[2], 0, 9e15)
local ttl_ms = whole(ARGV[3], 1, 1e12)
if not fence then
  return refuse('fence')
elseif not turn then
  return refuse('turn')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif ARGV[4] ~= '0' and ARGV[4] ~= '1' then
  return refuse('has_value')
end
local last = redis.call('HMGET', KEYS[1], 'fence', 'turn')
local last_fence, last_turn = tonumber(last[1] or 0), tonumber(last[2] or 0)
if fence < last_fence or (fence == last_fence and turn < last_turn) then
  return {'STALE', 'fence', last_fence, 'turn', last_turn}
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'turn', ARGV[2])
if ARGV[4] == '1' then
  redis.call('HSET', KEYS[1], 'value', ARGV[5])
else
  redis.call('HDEL', KEYS[1], 'value')
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'WRITTEN'}
end
redis.register_function{function_name = 'russet_v1_lease_fenced_write', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads what the latest holder of a lease has written.
-- KEYS: 1 the record
-- Replies: FOUND fence, value; EMPTY
local found = redis.call('HMGET', KEYS[1], 'fence', 'value')
if not found[1] or not found[2] then
  return {'EMPTY'}
end
return {'FOUND', 'fence', tonumber(found[1]), 'value', found[2]}
end
redis.register_function{function_name = 'russet_v1_lease_fenced_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Decides under one bucket alone: what limit_check does for it, in less time.
-- KEYS: 1 request marker; 2 the bucket
-- ARGV: 1 request_ttl_ms; 2 charge, an id that no other call has; 3 cost; 4 max per window;
--   5 window_ms; 6 burst
-- Replies: ALLOWED charge (its id, a slash and the cost), limits; DENIED retry_after_ms, limits.
--   limits has four numbers: remaining, reset_ms, retry_after_ms, window (for a refund)
-- Errors: INVALID charge, cost, max, window_ms, burst
local charge, cost = ARGV[2], whole(ARGV[3], 1, 1e6)
local max, window, burst = whole(ARGV[4], 1, 1e6), whole(ARGV[5], 1, 1e12), whole(ARGV[6], 1, 1e6)
if not charge or #charge == 0 or #charge > 64 then return refuse('charge') end
if not max then return refuse('max') end
if not window then return refuse('window_ms') end
if not burst or burst * window * 1000 / max > 2 ^ 52 then return refuse('burst') end
if not cost or cost > burst then return refuse('cost') end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms, since_us = math.floor(now_us / 1000), now_us - 1735689600000000
local interval = window * 1000 / max
local capacity = burst * interval
local ahead = (tonumber(redis.call('GET', KEYS[2])) or 0) - since_us
local is_wrong = ahead > capacity + 1000
if ahead < 0 then
  ahead = 0
elseif ahead > capacity then
  ahead = capacity
end
local over = ahead + cost * interval - capacity
if over > interval / 100 then
  -- The clock was set back, or the bucket was larger.
  if is_wrong then
    local full_at = string.format('%.17g', since_us + ahead)
    redis.call('SET', KEYS[2], full_at, 'PX', math.ceil(ahead / 1000) + 1)
  end
  local wait = math.ceil(over / 1000)
  local left = math.floor((capacity - ahead) / interval + 0.01)
  local limits = {left, math.ceil(ahead / 1000), wait, now_ms}
  return {'DENIED', 'retry_after_ms', wait, 'limits', limits}, true
end
ahead = ahead + cost * interval
local reset = math.ceil(ahead / 1000)
redis.call('SET', KEYS[2], string.format('%.17g', since_us + ahead), 'PX', reset + 1)
local left = math.floor((capacity - ahead) / interval + 0.01)
local limits = {left > 0 and left or 0, reset, 0, now_ms + reset}
return {'ALLOWED', 'charge', charge .. '/' .. ARGV[3], 'limits', limits}
end
redis.register_function{function_name = 'russet_v1_limit_bucket', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 6 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Decides whether something may happen under one or more limits. All are charged, or none.
-- KEYS: 1 request marker; 2 and on: one key per limit
-- ARGV: 1 request_ttl_ms; 2 charge, an id that no other call has; 3 TAKE or PEEK; 4 cost;
--   then four per limit:
--   kind (WINDOW, QUOTA, SLIDING, BUCKET, LOG or CONCURRENCY), max,
--   window_ms (of a QUOTA: HOUR, DAY, WEEK or MONTH; of a CONCURRENCY: how long a place is held),
--   extra (of a BUCKET: burst; of a QUOTA: minutes to add to UTC; else 0)
-- Replies: ALLOWED charge (its id, a slash and the cost), limits; DENIED retry_after_ms, limits.
--   limits has four numbers per limit: remaining, reset_ms, retry_after_ms (0: not this one
--   denies), window (for a refund)
-- Errors: INVALID charge, mode, cost, limits, kind, max, window_ms, extra
-- Notes: a PEEK writes nothing, and takes 0 as request_ttl_ms. A denial is not remembered. Under a
--   LOG or CONCURRENCY a charge counts once, however often it is made; no two limits share a key.
local floor, ceil = math.floor, math.ceil
local CAPACITY_US_MAX = 2 ^ 52
local charge, mode = ARGV[2], ARGV[3]
local cost = whole(ARGV[4], 1, 1e9)
local count = #KEYS - 1
if not charge or #charge == 0 or #charge > 64 then return refuse('charge') end
if mode ~= 'TAKE' and mode ~= 'PEEK' then return refuse('mode') end
if not cost then return refuse('cost') end
if count < 1 or count > 16 or #ARGV ~= 4 + 4 * count then return refuse('limits') end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = floor(now_us / 1000)
-- Times of a bucket count from 2025, so that a double holds them to a hundredth of a microsecond.
local since_us = now_us - 1735689600000000

-- How long the present hour, day, week or month still lasts. Months until February 2100.
local function period_rest(period, offset_min)
  local there = now + offset_min * 60000
  if period == 'MONTH' then
    local day = floor(there / 86400000) - 11017 -- since March 1, 2000
    local within = day % 1461
    local year = math.min(floor(within / 365), 3)
    local of_year = within - 365 * year
    local month = floor((5 * of_year + 2) / 153)
    local next_month = floor((153 * (month + 1) + 2) / 5)
    if month == 11 then next_month = year == 3 and 366 or 365 end
    return (next_month - of_year) * 86400000 - there % 86400000
  end
  local length = period == 'HOUR' and 3600000 or period == 'DAY' and 86400000 or 604800000
  -- Weeks begin on Monday; 1970 began on a Thursday.
  if period == 'WEEK' then there = there + 3 * 86400000 end
  return length - there % length
end

-- How many entries this charge has already, of those that it would make: it was charged before.
local function own_entries(key)
  local own = 0
  for entry = 1, mode == 'TAKE' and cost or 0 do
    local until_ms = tonumber(redis.call('ZSCORE', key, charge .. ':' .. entry))
    if not until_ms or until_ms <= now then break end
    own = entry
  end
  return own
end

-- What stands in the way of `cost`: remaining before it, reset_ms, retry_after_ms, window; whether
-- what is stored limits for longer than a window, as after a clock was set back; then what `take`
-- has to know. It writes nothing.
local function look(key, kind, max, window, extra)
  if kind == 'BUCKET' then
    local interval = window * 1000 / max
    local capacity = extra * interval
    local ahead = (tonumber(redis.call('GET', key)) or 0) - since_us
    local is_wrong = ahead > capacity + 1000
    ahead = math.max(math.min(ahead, capacity), 0)
    local over = ahead + cost * interval - capacity
    -- Sums of intervals are rounded; a hundredth of one decides nothing.
    local wait = over > interval / 100 and ceil(over / 1000) or 0
    local left = floor((capacity - ahead) / interval + 0.01)
    return left, ceil(ahead / 1000), wait, now, is_wrong, ahead, interval
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    local length = kind == 'QUOTA' and period_rest(window, extra) or window
    local stored = redis.call('GET', key)
    -- What is no number counts as nothing, and is written anew.
    if stored and not whole(stored, -9e15, 9e15) then stored = nil end
    local used, rest = tonumber(stored) or 0, stored and redis.call('PTTL', key) or length
    -- Without a TTL it would limit for ever.
    local is_wrong = rest < 0 or rest > length
    if is_wrong then rest = length end
    local wait = used + cost > max and math.max(rest, 1) or 0
    return max - used, rest, wait, now + rest, is_wrong, stored
  elseif kind == 'SLIDING' then
    local index = floor(now / window)
    local stored = redis.call('HMGET', key, 'window', 'count', 'before')
    local used, before = tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
    local gone = index - (tonumber(stored[1]) or index)
    if gone == 1 then
      used, before = 0, used
    elseif gone > 1 then
      used, before = 0, 0
    end
    local rest = (index + 1) * window - now
    local weighed = before * rest / window
    local wait = 0
    if used + cost > max then
      -- In the next window, when enough of this one has slid out.
      wait = rest + math.max(0, ceil(window - (max - cost) * window / used))
    elseif weighed + used + cost > max then
      wait = math.max(1, ceil(rest - (max - used - cost) * window / before))
    end
    local reset = used > 0 and rest + window or before > 0 and rest or 0
    return floor(max - used - weighed), reset, wait, index, gone < 0, used, before, rest
  else
    local live = string.format('(%.0f', now)
    local used = redis.call('ZCOUNT', key, live, '+inf')
    local reset, wait, is_wrong = 0, 0, false
    local left, own = max - used, own_entries(key)
    local cost = cost - own
    if used > 0 then
      local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
      reset = newest[2] - now
    end
    if cost > 0 and used + cost > max then
      local nth = math.min(used + cost - max, used) - 1
      local entry = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', nth, 1)
      wait = math.max(1, (entry[2] or now + window) - now)
      is_wrong = wait > window
      wait = math.min(wait, window)
    end
    return left + own, math.min(reset, window), wait, now, is_wrong
  end
end

-- Charges it. Replies with the new reset_ms.
local function take(key, kind, window, seen)
  if kind == 'BUCKET' then
    local ahead = seen[6] + cost * seen[7]
    local reset = ceil(ahead / 1000)
    redis.call('SET', key, string.format('%.17g', since_us + ahead), 'PX', reset + 1)
    return reset
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    if seen[6] then
      redis.call('INCRBY', key, cost)
      if seen[5] then redis.call('PEXPIRE', key, seen[2]) end
    else
      redis.call('SET', key, cost, 'PX', seen[2])
    end
    return seen[2]
  elseif kind == 'SLIDING' then
    redis.call('HSET', key, 'window', seen[4], 'count', seen[6] + cost, 'before', seen[7])
    redis.call('PEXPIRE', key, seen[8] + window)
    return seen[8] + window
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    for entry = 1, cost do
      redis.call('ZADD', key, 'NX', now + window, charge .. ':' .. entry)
    end
    if redis.call('PTTL', key) < window then redis.call('PEXPIRE', key, window) end
    return window
  end
end

-- What would limit for longer than a window limits for one from now.
local function mend(key, kind, window, seen)
  if kind == 'BUCKET' then
    redis.call('SET', key, string.format('%.17g', since_us + seen[6]), 'PX', seen[2] + 1)
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    redis.call('PEXPIRE', key, seen[2])
  elseif kind == 'SLIDING' then
    redis.call('HSET', key, 'window', seen[4])
    redis.call('PEXPIRE', key, seen[8] + window)
  else
    local last = now + window
    local beyond = string.format('(%.0f', last)
    for _, entry in ipairs(redis.call('ZRANGEBYSCORE', key, beyond, '+inf', 'LIMIT', 0, 10000)) do
      redis.call('ZADD', key, last, entry)
    end
    redis.call('PEXPIRE', key, window)
  end
end

-- The largest maximum of a kind.
local function max_of(kind)
  if kind == 'BUCKET' then return 1e6 end
  if kind == 'WINDOW' or kind == 'SLIDING' then return 1e9 end
  if kind == 'LOG' or kind == 'CONCURRENCY' then return 1e4 end
  return kind == 'QUOTA' and 1e15
end

local seen, rules, is_given = {}, {}, {}
local wait_max = 0
for i = 1, count do
  local at = 4 * i
  local kind, window, extra = ARGV[at + 1], ARGV[at + 3], ARGV[at + 4]
  if is_given[KEYS[i + 1]] then return refuse('limits') end
  is_given[KEYS[i + 1]] = true
  local most = max_of(kind)
  if not most then return refuse('kind') end
  local max = whole(ARGV[at + 2], 1, most)
  if not max then return refuse('max') end
  if kind == 'QUOTA' then
    if window ~= 'HOUR' and window ~= 'DAY' and window ~= 'WEEK' and window ~= 'MONTH' then
      return refuse('window_ms')
    end
    extra = whole(extra, -1440, 1440)
  else
    window = whole(window, 1, 1e12)
    if not window then return refuse('window_ms') end
    if kind == 'BUCKET' then
      -- Sums of microseconds are exact up to there.
      extra = whole(extra, 1, 1e6)
      if extra and extra * window * 1000 / max > CAPACITY_US_MAX then return refuse('extra') end
    else
      extra = extra == '0' and 0
    end
  end
  if not extra then return refuse('extra') end
  if cost > (kind == 'BUCKET' and extra or max) then return refuse('cost') end
  rules[i] = {kind, max, window, extra}
end
for i = 1, count do
  local rule = rules[i]
  local found = {look(KEYS[i + 1], rule[1], rule[2], rule[3], rule[4])}
  seen[i] = found
  if found[3] > wait_max then wait_max = found[3] end
end

local is_taken = mode == 'TAKE' and wait_max == 0
local limits = {}
for i = 1, count do
  local rule, found, at = rules[i], seen[i], 4 * i
  local left, reset = found[1], found[2]
  if is_taken then
    reset = take(KEYS[i + 1], rule[1], rule[3], found)
    left = left - cost
    if rule[1] == 'BUCKET' then found[4] = now + reset end
  elseif mode == 'TAKE' and found[5] then
    mend(KEYS[i + 1], rule[1], rule[3], found)
  end
  limits[at - 3] = left > 0 and left or 0
  limits[at - 2], limits[at - 1], limits[at] = reset, found[3], found[4]
end
if wait_max > 0 then
  return {'DENIED', 'retry_after_ms', wait_max, 'limits', limits}, true
end
return {'ALLOWED', 'charge', charge .. '/' .. ARGV[4], 'limits', limits}, mode == 'PEEK'
end
redis.register_function{function_name = 'russet_v1_limit_check', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives back a charge, or part of it, once: as far as it still counts.
-- KEYS: 1 request marker, of the charge's id; 2 marker of the request that was charged;
--   3 and on: one key per limit
-- ARGV: 1 request_ttl_ms; 2 charge, as the reply gave it; 3 amount, at most its cost; then four per
--   limit: kind, max, window_ms (as they were charged), window (as the charge's reply gave it)
-- Replies: REFUNDED returned (a number per limit: 0 if that charge has run out by itself)
-- Errors: INVALID charge, amount, limits, kind, max, window_ms, window
-- Notes: a request that was given back as a whole may be charged anew afterwards. Nothing ever has
--   more than its max left.
local floor = math.floor
local charge, cost = string.match(ARGV[2], '^(.+)/(%d+)$')
cost = whole(cost, 1, 1e9)
local amount = cost and whole(ARGV[3], 1, cost)
local count = #KEYS - 2
if not cost or #charge > 64 then return refuse('charge') end
if not amount then return refuse('amount') end
if count < 1 or count > 16 or #ARGV ~= 3 + 4 * count then return refuse('limits') end
local KINDS = {WINDOW = 1, QUOTA = 1, SLIDING = 1, BUCKET = 1, LOG = 1, CONCURRENCY = 1}
local PERIODS = {HOUR = 3600000, DAY = 86400000, WEEK = 604800000, MONTH = 2419200000}
for i = 1, count do
  local at = 4 * i - 1
  if not KINDS[ARGV[at + 1]] then return refuse('kind') end
  if not whole(ARGV[at + 2], 1, 1e15) then return refuse('max') end
  if not (PERIODS[ARGV[at + 3]] or whole(ARGV[at + 3], 1, 1e12)) then return refuse('window_ms') end
  if not whole(ARGV[at + 4], 0, 1e15) then return refuse('window') end
end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = floor(now_us / 1000)

local function give_back(key, kind, max, length, window)
  if kind == 'WINDOW' or kind == 'QUOTA' then
    local used = tonumber(redis.call('GET', key)) or 0
    local rest = redis.call('PTTL', key)
    -- The next window ends a whole length later.
    if used <= 0 or rest < 0 or math.abs(now + rest - window) > length / 2 then return 0 end
    local part = math.min(amount, used)
    redis.call('DECRBY', key, part)
    return part
  elseif kind == 'SLIDING' then
    local stored = redis.call('HMGET', key, 'window', 'count', 'before')
    local gone = (tonumber(stored[1]) or -2) - window
    local field = gone == 0 and 'count' or gone == 1 and 'before'
    if not field then return 0 end
    local part = math.min(amount, tonumber(stored[gone == 0 and 2 or 3]) or 0)
    if part > 0 then redis.call('HINCRBY', key, field, -part) end
    return part
  elseif kind == 'BUCKET' then
    local since_us = now_us - 1735689600000000
    local ahead = (tonumber(redis.call('GET', key)) or 0) - since_us
    -- What came first drains first: `window` is when the last of this charge has.
    local interval = length * 1000 / max
    local part = math.min(amount * interval, window * 1000 - now_us)
    if ahead <= 0 or part <= 0 then return 0 end
    ahead = ahead - part
    if ahead <= 0 then
      redis.call('DEL', key)
    else
      local full_at = string.format('%.17g', since_us + ahead)
      redis.call('SET', key, full_at, 'PX', math.ceil(ahead / 1000) + 1)
    end
    return math.min(amount, math.ceil(part / interval - 0.01))
  end
  local part = 0
  for entry = 1, amount do
    part = part + redis.call('ZREM', key, charge .. ':' .. entry)
  end
  return part
end

-- Keys that are not what they should be fail here, before anything is written.
for i = 1, count do
  local kind, key = ARGV[4 * i], KEYS[i + 2]
  if kind == 'SLIDING' then
    redis.call('HLEN', key)
  elseif kind == 'LOG' or kind == 'CONCURRENCY' then
    redis.call('ZCARD', key)
  else
    redis.call('GET', key)
  end
end
local returned = {}
for i = 1, count do
  local at = 4 * i - 1
  local length = PERIODS[ARGV[at + 3]] or tonumber(ARGV[at + 3])
  local max, window = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 4])
  returned[i] = give_back(KEYS[i + 2], ARGV[at + 1], max, length, window)
end
if amount == cost then redis.call('DEL', KEYS[2]) end
return {'REFUNDED', 'returned', returned}
end
redis.register_function{function_name = 'russet_v1_limit_refund', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives up the places of a charge under limits of concurrency.
-- KEYS: 1 marker of the request that was charged; 2 and on: one key per limit of concurrency
-- ARGV: 1 charge, as the reply gave it; 2 cost
-- Replies: RELEASED; GONE if it held none any more
-- Errors: INVALID charge, cost, limits
local charge, charged = string.match(ARGV[1], '^(.+)/(%d+)$')
charged = whole(charged, 1, 1e4)
if not charged or #charge > 64 then return refuse('charge') end
local cost = whole(ARGV[2], 1, charged)
if not cost then return refuse('cost') end
if #KEYS < 2 or #KEYS > 17 then return refuse('limits') end
local released = 0
for i = 2, #KEYS do
  for entry = 1, cost do
    released = released + redis.call('ZREM', KEYS[i], charge .. ':' .. entry)
  end
end
if released == 0 then return {'GONE'} end
-- The same request may take a place anew.
redis.call('DEL', KEYS[1])
return {'RELEASED'}
end
redis.register_function{function_name = 'russet_v1_limit_release', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Holds the places of a charge under limits of concurrency for another while, if none has run out.
-- KEYS: 1 marker of the request that was charged; 2 and on: one key per limit of concurrency
-- ARGV: 1 charge, as the reply gave it; 2 cost; then one per limit: window_ms, how long from now
-- Replies: RENEWED; LOST
-- Errors: INVALID charge, cost, limits, window_ms
local charge, charged = string.match(ARGV[1], '^(.+)/(%d+)$')
charged = whole(charged, 1, 1e4)
if not charged or #charge > 64 then return refuse('charge') end
local cost = whole(ARGV[2], 1, charged)
if not cost then return refuse('cost') end
if #KEYS < 2 or #KEYS > 17 then return refuse('limits') end
local now = now_ms()
for i = 2, #KEYS do
  if not whole(ARGV[i + 1], 1, 1e12) then return refuse('window_ms') end
  for entry = 1, cost do
    local until_ms = tonumber(redis.call('ZSCORE', KEYS[i], charge .. ':' .. entry))
    if not until_ms or until_ms <= now then return {'LOST'} end
  end
end
for i = 2, #KEYS do
  local window = tonumber(ARGV[i + 1])
  for entry = 1, cost do
    redis.call('ZADD', KEYS[i], 'XX', 'GT', now + window, charge .. ':' .. entry)
  end
  if redis.call('PTTL', KEYS[i]) < window then redis.call('PEXPIRE', KEYS[i], window) end
end
if redis.call('PTTL', KEYS[1]) >= 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT')
end
return {'RENEWED'}
end
redis.register_function{function_name = 'russet_v1_limit_renew', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Forgets what was charged under limits.
-- KEYS: 1 and on: one key per limit
-- ARGV: none
-- Replies: OK
-- Errors: INVALID limits
if #KEYS > 16 then return refuse('limits') end
for i = 1, #KEYS do
  redis.call('DEL', KEYS[i])
end
return {'OK'}
end
redis.register_function{function_name = 'russet_v1_limit_reset', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Writes fields of a record, in one piece, and raises its version. A field with a TTL of its own
-- has its deadline in a field beside it, which readers go by; servers that can expire fields do so
-- too.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 CREATE (if it is not there), PUT, UPDATE (if it is there) or NEWER (if
-- its source is newer); 3 expected version of an update, or version of the source, or empty; 4
-- ttl_ms; 5 KEEP or RENEW the TTL; 6 schema; 7 how many fields are set; then of each the name, the
-- value and field_ttl_ms, 0 for none; then the names of fields to remove
-- Replies: OK version; EXISTS version; MISSING; CONFLICT version; STALE source_version
-- Errors: INVALID mode, expected, ttl_ms, ttl_mode, schema, fields
local mode, expected = ARGV[2], nil
local ttl_ms, schema = whole(ARGV[4], 1, 1e13), whole(ARGV[6], 1, 4294967295)
local count = whole(ARGV[7], 0, 1000)
if mode ~= 'CREATE' and mode ~= 'PUT' and mode ~= 'UPDATE' and mode ~= 'NEWER' then
  return refuse('mode')
end
if ARGV[3] ~= '' or mode == 'NEWER' then
  expected = whole(ARGV[3], 0, 9007199254740991)
  if not expected then return refuse('expected') end
end
if not ttl_ms then return refuse('ttl_ms') end
if ARGV[5] ~= 'KEEP' and ARGV[5] ~= 'RENEW' then return refuse('ttl_mode') end
if not schema then return refuse('schema') end
if not count or #ARGV < 7 + 3 * count then return refuse('fields') end
-- What the store itself keeps is no field: whoever sets or removes the version defeats it.
local RESERVED = {version = true, schema_version = true, created_at_ms = true,
  updated_at_ms = true, source_version = true}
local function is_field(name)
  return name ~= '' and not RESERVED[name] and not string.find(name, '%.expires_at_ms$')
end
for i = 8, 7 + 3 * count, 3 do
  if not is_field(ARGV[i]) or not whole(ARGV[i + 2], 0, 1e13) then return refuse('fields') end
end
for i = 8 + 3 * count, #ARGV do
  if not is_field(ARGV[i]) then return refuse('fields') end
end

local kept = redis.call('HMGET', KEYS[2], 'version', 'schema_version', 'source_version')
local version = tonumber(kept[1] or 0)
local is_there = redis.call('EXISTS', KEYS[2]) == 1
if mode == 'CREATE' and is_there then return {'EXISTS', 'version', version}, true end
if mode == 'UPDATE' and not is_there then return {'MISSING'}, true end
if mode == 'UPDATE' and expected and expected ~= version then
  return {'CONFLICT', 'version', version}, true
end
if mode == 'NEWER' and kept[3] and tonumber(kept[3]) >= expected then
  return {'STALE', 'source_version', tonumber(kept[3])}, true
end

local now = now_ms()
version = version + 1
-- A program of an older schema does not take back what a newer one has done, but for a whole
-- record.
if mode == 'UPDATE' then schema = math.max(schema, tonumber(kept[2] or 0)) end
local set = {'version', version, 'schema_version', schema, 'updated_at_ms', now}
if mode == 'NEWER' then
  set[#set + 1] = 'source_version'
  set[#set + 1] = expected
end
for i = 8, 7 + 3 * count, 3 do
  set[#set + 1] = ARGV[i]
  set[#set + 1] = ARGV[i + 1]
end
redis.call('HSET', KEYS[2], unpack(set))
redis.call('HSETNX', KEYS[2], 'created_at_ms', now)
for i = 8, 7 + 3 * count, 3 do
  local name, field_ttl_ms = ARGV[i], tonumber(ARGV[i + 2])
  if field_ttl_ms > 0 then
    local deadline = name .. '.expires_at_ms'
    redis.call('HSET', KEYS[2], deadline, now + field_ttl_ms)
    redis.pcall('HPEXPIREAT', KEYS[2], now + field_ttl_ms, 'FIELDS', 2, name, deadline)
  end
end
for i = 8 + 3 * count, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i], ARGV[i] .. '.expires_at_ms')
end
if ARGV[5] == 'RENEW' or redis.call('PTTL', KEYS[2]) < 0 then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'OK', 'version', version}
end
redis.register_function{function_name = 'russet_v1_object_write', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 7 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads some fields of a record. A field past its own deadline is not there.
-- KEYS: 1 the record
-- ARGV: for each field its name, and 1 if it has a TTL of its own, else 0
-- Replies: FOUND version, schema, created_at_ms, updated_at_ms (-1 each if it is not there),
-- ttl_ms, values (nil for a missing one); MISSING
-- Errors: INVALID fields
if #ARGV < 2 or #ARGV % 2 ~= 0 or #ARGV > 1000 then return refuse('fields') end
if redis.call('EXISTS', KEYS[1]) == 0 then return {'MISSING'} end
-- All in one command: what the record says of itself, then each field and its deadline.
local names = {'version', 'schema_version', 'created_at_ms', 'updated_at_ms'}
for i = 1, #ARGV, 2 do
  names[#names + 1] = ARGV[i]
  if ARGV[i + 1] == '1' then names[#names + 1] = ARGV[i] .. '.expires_at_ms' end
end
local kept = redis.call('HMGET', KEYS[1], unpack(names))
local now, values, at = now_ms(), {}, 4
for i = 1, #ARGV, 2 do
  at = at + 1
  local value = kept[at]
  if ARGV[i + 1] == '1' then
    at = at + 1
    if not kept[at] or (tonumber(kept[at]) or 0) <= now then value = false end
  end
  values[#values + 1] = value
end
local function number(text) return text and tonumber(text) or -1 end
return {'FOUND', 'version', number(kept[1]), 'schema', number(kept[2]), 'created_at_ms',
  number(kept[3]), 'updated_at_ms', number(kept[4]), 'ttl_ms', redis.call('PTTL', KEYS[1]),
  'values', values}
end
redis.register_function{function_name = 'russet_v1_object_load', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Adds to a field of a record that is there, within bounds, and raises the record's version.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 field; 3 by; 4 least and 5 most that it may become; 6 optional:
-- field_ttl_ms, of a field with a TTL of its own, which begins with it if it is not there
-- Replies: OK value, version; MISSING; BOUND value; CORRUPT
-- Errors: INVALID field, by, bounds, field_ttl_ms
local EXACT_MAX = 9007199254740991
local by = whole(ARGV[3], -EXACT_MAX, EXACT_MAX)
local least, most = whole(ARGV[4], -EXACT_MAX, EXACT_MAX), whole(ARGV[5], -EXACT_MAX, EXACT_MAX)
local field = ARGV[2]
if field == '' or field == 'version' or field == 'schema_version' or field == 'created_at_ms'
  or field == 'updated_at_ms' or field == 'source_version'
  or string.find(field, '%.expires_at_ms$') then
  return refuse('field')
end
if not by then return refuse('by') end
if not least or not most or least > most then return refuse('bounds') end
local field_ttl_ms = whole(ARGV[6] or '0', 0, 1e13)
if not field_ttl_ms then return refuse('field_ttl_ms') end
if redis.call('EXISTS', KEYS[2]) == 0 then return {'MISSING'}, true end
local deadline = field .. '.expires_at_ms'
local deadline_ms = tonumber(redis.call('HGET', KEYS[2], deadline))
local now = now_ms()
-- One past its deadline is not there, and neither is one that has lost it.
local is_new = deadline_ms and deadline_ms <= now or field_ttl_ms > 0 and not deadline_ms
local stored = not is_new and redis.call('HGET', KEYS[2], field) or '0'
local before = whole(stored, -EXACT_MAX, EXACT_MAX)
if not before then return {'CORRUPT'}, true end
local value = before + by
if value < least or value > most then return {'BOUND', 'value', before}, true end
if is_new then
  -- It begins anew: its old deadline would hide it.
  redis.call('HDEL', KEYS[2], field, deadline)
end
redis.call('HINCRBY', KEYS[2], field, by)
if is_new and field_ttl_ms > 0 then
  redis.call('HSET', KEYS[2], deadline, now + field_ttl_ms)
  redis.pcall('HPEXPIREAT', KEYS[2], now + field_ttl_ms, 'FIELDS', 2, field, deadline)
end
redis.call('HSET', KEYS[2], 'updated_at_ms', now)
return {'OK', 'value', value, 'version', redis.call('HINCRBY', KEYS[2], 'version', 1)}
end
redis.register_function{function_name = 'russet_v1_object_increment', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a record its whole TTL again, if less than a quarter is left: so few calls write.
-- KEYS: 1 the record
-- ARGV: 1 ttl_ms
-- Replies: RENEWED; FRESH; MISSING
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[1], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {'MISSING'} end
if left >= ttl_ms / 4 then return {'FRESH'} end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'RENEWED'}
end
redis.register_function{function_name = 'russet_v1_object_touch', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes a record, and what belongs to it.
-- KEYS: 1 the record; 2... what belongs to it
-- Replies: REMOVED; MISSING
local is_there = redis.call('EXISTS', KEYS[1]) == 1
redis.call('UNLINK', unpack(KEYS))
return {is_there and 'REMOVED' or 'MISSING'}
end
redis.register_function{function_name = 'russet_v1_object_remove', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Adds a member to a set of an index, or removes it.
-- KEYS: 1 the set
-- ARGV: 1 SET or CLEAR; 2 member; 3 members_max; 4 ttl_ms after the last member
-- Replies: CHANGED members; UNCHANGED members; FULL members
-- Errors: INVALID how, members_max, ttl_ms
local members_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[1] ~= 'SET' and ARGV[1] ~= 'CLEAR' then return refuse('how') end
if not members_max then return refuse('members_max') end
if not ttl_ms then return refuse('ttl_ms') end
local members = redis.call('SCARD', KEYS[1])
if ARGV[1] == 'CLEAR' then
  local removed = redis.call('SREM', KEYS[1], ARGV[2])
  return {removed == 1 and 'CHANGED' or 'UNCHANGED', 'members', members - removed}
end
local is_there = redis.call('SISMEMBER', KEYS[1], ARGV[2]) == 1
if not is_there and members >= members_max then return {'FULL', 'members', members} end
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
if is_there then return {'UNCHANGED', 'members', members} end
return {'CHANGED', 'members', members + 1}
end
redis.register_function{function_name = 'russet_v1_index_change', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Moves a member from one set of an index to another: it is never in both, and never in none.
-- KEYS: 1 the set it is in; 2 the set it goes to
-- ARGV: 1 member; 2 members_max; 3 ttl_ms
-- Replies: MOVED; ALREADY (it is in the other one, and no longer in the first); MISSING; FULL
-- Errors: INVALID members_max, ttl_ms
local members_max, ttl_ms = whole(ARGV[2], 1, 1e9), whole(ARGV[3], 1, 1e13)
if not members_max then return refuse('members_max') end
if not ttl_ms then return refuse('ttl_ms') end
local is_here = redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1
local is_there = redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
if not is_here and not is_there then return {'MISSING'} end
if not is_there and redis.call('SCARD', KEYS[2]) >= members_max then return {'FULL'} end
redis.call('SREM', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {is_here and 'MOVED' or 'ALREADY'}
end
redis.register_function{function_name = 'russet_v1_index_move', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- How many members a set of an index has, and which of some are in it.
-- KEYS: 1 the set
-- ARGV: 1... members
-- Replies: OK members, contains (1 or 0 for each)
-- Errors: INVALID members
if #ARGV > 1000 then return refuse('members') end
local contains = {}
for i = 1, #ARGV do
  contains[i] = redis.call('SISMEMBER', KEYS[1], ARGV[i])
end
return {'OK', 'members', redis.call('SCARD', KEYS[1]), 'contains', contains}
end
redis.register_function{function_name = 'russet_v1_index_look', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Some members of a set of an index. What is in it from the first page to the last is seen at least
-- once.
-- KEYS: 1 the set
-- ARGV: 1 cursor, 0 at first; 2 count, about
-- Replies: OK cursor (0 at the end), members
-- Errors: INVALID cursor, count
local count = whole(ARGV[2], 1, 1000)
if not string.match(ARGV[1], '^%d+$') then return refuse('cursor') end
if not count then return refuse('count') end
local page = redis.call('SSCAN', KEYS[1], ARGV[1], 'COUNT', count)
return {'OK', 'cursor', page[1], 'members', page[2]}
end
redis.register_function{function_name = 'russet_v1_index_scan', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Members of all of some sets of an index, of any of them, or of the first and none of the others.
-- KEYS: 1... the sets
-- ARGV: 1 ALL, ANY or FIRST; 2 count
-- Replies: OK total, members (at most count)
-- Errors: INVALID how, count, sets
local count = whole(ARGV[2], 0, 1000)
if not count then return refuse('count') end
if #KEYS < 1 or #KEYS > 8 then return refuse('sets') end
local found
if ARGV[1] == 'ALL' then
  found = redis.call('SINTER', unpack(KEYS))
elseif ARGV[1] == 'ANY' then
  found = redis.call('SUNION', unpack(KEYS))
elseif ARGV[1] == 'FIRST' then
  found = redis.call('SDIFF', unpack(KEYS))
else
  return refuse('how')
end
local members = {}
for i = 1, math.min(#found, count) do members[i] = found[i] end
return {'OK', 'total', #found, 'members', members}
end
redis.register_function{function_name = 'russet_v1_index_combine', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 0 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Sets a line item of a draft, or removes it, and brings the sums of the draft in line.
-- KEYS: 1 request marker; 2 the draft; 3 its items
-- ARGV: 1 request_ttl_ms; 2 sku; 3 quantity, 0 removes it; 4 unit_minor; 5 expected version, or
-- empty; 6 items_max; 7 ttl_ms
-- Replies: OK version, subtotal_minor, total_minor; MISSING; CONFLICT version; FULL; CORRUPT
-- Errors: INVALID sku, quantity, unit_minor, expected, items_max, ttl_ms, total
local EXACT_MAX = 9007199254740991
local quantity, unit = whole(ARGV[3], 0, 1e6), whole(ARGV[4], 0, 1e12)
local items_max, ttl_ms = whole(ARGV[6], 1, 10000), whole(ARGV[7], 1, 1e13)
if ARGV[2] == '' then return refuse('sku') end
if not quantity then return refuse('quantity') end
if not unit then return refuse('unit_minor') end
if ARGV[5] ~= '' and not whole(ARGV[5], 0, EXACT_MAX) then return refuse('expected') end
if not items_max then return refuse('items_max') end
if not ttl_ms then return refuse('ttl_ms') end

local kept = redis.call('HMGET', KEYS[2], 'version', 'subtotal_minor', 'discount_minor',
  'tax_minor', 'item_count')
if not kept[1] then return {'MISSING'}, true end
local version = tonumber(kept[1])
if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= version then
  return {'CONFLICT', 'version', version}, true
end
local subtotal, discount, tax = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
if not version or not subtotal or not discount or not tax then return {'CORRUPT'}, true end
-- Sums of items that were lost are no sums.
if tonumber(kept[5]) ~= redis.call('HLEN', KEYS[3]) then return {'CORRUPT'}, true end
local before = redis.call('HGET', KEYS[3], ARGV[2])
if not before and quantity > 0 and redis.call('HLEN', KEYS[3]) >= items_max then
  return {'FULL'}, true
end
if before then
  local was_quantity, was_unit = string.match(before, '^(%d+):(%d+)$')
  if not was_quantity then return {'CORRUPT'}, true end
  subtotal = subtotal - tonumber(was_quantity) * tonumber(was_unit)
end
subtotal = subtotal + quantity * unit
-- A discount is never more than what it is taken from.
discount = math.min(discount, subtotal)
local total = subtotal - discount + tax
if subtotal > EXACT_MAX or total > EXACT_MAX then return refuse('total') end

if quantity > 0 then
  redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f:%.0f', quantity, unit))
else
  redis.call('HDEL', KEYS[3], ARGV[2])
end
redis.call('HSET', KEYS[2], 'version', version + 1, 'subtotal_minor', subtotal, 'discount_minor',
  discount, 'total_minor', total, 'item_count', redis.call('HLEN', KEYS[3]), 'updated_at_ms',
  now_ms())
redis.call('PEXPIRE', KEYS[2], ttl_ms)
redis.call('PEXPIRE', KEYS[3], ttl_ms)
return {'OK', 'version', version + 1, 'subtotal_minor', subtotal, 'total_minor', total}
end
redis.register_function{function_name = 'russet_v1_draft_item', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 7 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Sets discount or tax of a draft and brings its total in line.
-- KEYS: 1 request marker; 2 the draft; 3 its items
-- ARGV: 1 request_ttl_ms; 2 DISCOUNT or TAX; 3 amount_minor; 4 expected version, or empty; 5 ttl_ms
-- Replies: OK version, subtotal_minor, total_minor; MISSING; CONFLICT version; TOO_LARGE
-- subtotal_minor; CORRUPT
-- Errors: INVALID what, amount_minor, expected, ttl_ms, total
local EXACT_MAX = 9007199254740991
local amount, ttl_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[5], 1, 1e13)
if ARGV[2] ~= 'DISCOUNT' and ARGV[2] ~= 'TAX' then return refuse('what') end
if not amount then return refuse('amount_minor') end
if ARGV[4] ~= '' and not whole(ARGV[4], 0, EXACT_MAX) then return refuse('expected') end
if not ttl_ms then return refuse('ttl_ms') end
local kept = redis.call('HMGET', KEYS[2], 'version', 'subtotal_minor', 'discount_minor',
  'tax_minor', 'item_count')
if not kept[1] then return {'MISSING'}, true end
local version = tonumber(kept[1])
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then
  return {'CONFLICT', 'version', version}, true
end
local subtotal, discount, tax = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
if not version or not subtotal or not discount or not tax then return {'CORRUPT'}, true end
-- Sums of items that were lost are no sums.
if tonumber(kept[5]) ~= redis.call('HLEN', KEYS[3]) then return {'CORRUPT'}, true end
if ARGV[2] == 'DISCOUNT' then
  if amount > subtotal then return {'TOO_LARGE', 'subtotal_minor', subtotal}, true end
  discount = amount
else
  tax = amount
end
local total = subtotal - discount + tax
if total > EXACT_MAX then return refuse('total') end
redis.call('HSET', KEYS[2], 'version', version + 1, 'discount_minor', discount, 'tax_minor', tax,
  'total_minor', total, 'updated_at_ms', now_ms())
redis.call('PEXPIRE', KEYS[2], ttl_ms)
redis.call('PEXPIRE', KEYS[3], ttl_ms)
return {'OK', 'version', version + 1, 'subtotal_minor', subtotal, 'total_minor', total}
end
redis.register_function{function_name = 'russet_v1_draft_discount', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The line items of a draft.
-- KEYS: 1 its items
-- Replies: OK items (sku, quantity:unit_minor, ...)
return {'OK', 'items', redis.call('HGETALL', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_draft_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.
local function make_ready(ready, id, due_us, boost_us)
  redis.call('ZADD', ready, due_us - boost_us, id)
end

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.
local function mark_counted(meta, jobs_before)
  if jobs_before == 0 then
    redis.call('HSET', meta, 'counted', '1')
  end
end

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Adds a job, to run as soon as it is due. Its id is unique as long as the job is not done.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 id; 3 payload; 4 delay_ms; 5 due_ms (0: after delay_ms); 6 priority (0
--   to 255); 7 group (may be empty); 8 capacity; 9 ttl_ms; 10 aging_ms
-- Replies: SCHEDULED due_ms; DUPLICATE; FULL
-- Errors: INVALID id, delay_ms, due_ms, priority, group, capacity, ttl_ms, aging_ms
local meta, jobs, bell = KEYS[2], KEYS[3], KEYS[10]
local id, payload, group = ARGV[2], ARGV[3], ARGV[7]
local delay_ms, due_ms = whole(ARGV[4], 0, TTL_MAX), whole(ARGV[5], 0, 1e14)
local priority = whole(ARGV[6], 0, PRIORITY_MAX)
local capacity, ttl_ms = whole(ARGV[8], 1, 1e9), whole(ARGV[9], 1, TTL_MAX)
local aging_ms = whole(ARGV[10], 0, TTL_MAX / PRIORITY_MAX)
if id == '' then return refuse('id') end
if not delay_ms then return refuse('delay_ms') end
if not due_ms then return refuse('due_ms') end
if not priority then return refuse('priority') end
if string.find(group, '%z') then return refuse('group') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end

if redis.call('HEXISTS', jobs, id) == 1 then
  return {'DUPLICATE'}, true
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}, true
end
local now = now_us()
local due_us = due_ms > 0 and due_ms * 1000 or now + delay_ms * 1000
-- A key that is not what it should be fails here, before anything is written.
local last = tonumber(redis.call('HGET', meta, 'last') or 0)
redis.call('ZCARD', due_us > now and KEYS[5] or KEYS[4])
redis.call('LLEN', bell)
mark_counted(meta, jobs_before)
write_job(jobs, id, {0, priority, group, payload})
if due_us > now then
  redis.call('ZADD', KEYS[5], due_us, id)
else
  -- Jobs of the same moment run in the order in which they came.
  due_us = math.max(now, last + 1)
  redis.call('HSET', meta, 'last', due_us)
  make_ready(KEYS[4], id, due_us, priority * aging_ms * 1000)
end
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(bell)
local wanted = math.floor(math.max(now, due_us) / 1000) + ttl_ms
local at = expiry(meta, wanted, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED', 'due_ms', math.floor(due_us / 1000)}
end
redis.register_function{function_name = 'russet_v1_jobs_schedule', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 10 or #ARGV < 10 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.
local function read_receipt(receipt)
  if string.sub(receipt, TOKEN_BYTES + 1, TOKEN_BYTES + 3) == ':0:' then
    local id = string.sub(receipt, TOKEN_BYTES + 4)
    return '', id ~= '' and id or nil
  end
  local length, rest = string.match(receipt, '^:(%d+):(.*)$', TOKEN_BYTES + 1)
  length = tonumber(length)
  if length and length < #rest then
    return string.sub(rest, 1, length), string.sub(rest, length + 1)
  end
end

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.
local function make_ready(ready, id, due_us, boost_us)
  redis.call('ZADD', ready, due_us - boost_us, id)
end

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.
local function unpark(jobs, parked, ready, group)
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  for _ = 1, REAP_MAX do
    local first = redis.call('ZRANGE', parked, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then
      return false
    end
    redis.call('ZREM', parked, first)
    local id = string.sub(first, #group + 19)
    if redis.call('HEXISTS', jobs, id) == 1 then
      redis.call('ZADD', ready, tonumber(string.sub(first, #group + 2, #group + 18)), id)
      return true
    end
  end
  return false
end

-- A job of a group waits until another has ended.
local function park(parked, group, score, id)
  redis.call('ZADD', parked, 0, group .. '\0' .. string.format('%017.0f', score) .. id)
end

-- A job of a group runs no more: says whether another may.
local function leave_group(meta, jobs, parked, ready, group)
  if group == '' then
    return false
  end
  if redis.call('HINCRBY', meta, 'g:' .. group, -1) <= 0 then
    redis.call('HDEL', meta, 'g:' .. group)
  end
  return unpark(jobs, parked, ready, group)
end

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.
local function dead_letter(dead, graves, meta, id, job, letter)
  local name = id
  while redis.call('HEXISTS', graves, name) == 1 do
    name = id .. '~' .. redis.call('HINCRBY', meta, 'letters', 1)
  end
  redis.call('ZADD', dead, letter.now_ms, name)
  redis.call('HSET', graves, name,
    cmsgpack.pack({job[1], job[2], job[3], job[4], letter.reason, id}))
  redis.call('HINCRBY', meta, 'died', 1)
  if redis.call('HLEN', graves) > redis.call('ZCARD', dead) then
    -- The list of them was lost: some are listed again with each new one.
    local page = redis.call('HSCAN', graves, redis.call('HGET', meta, 'relist') or '0', 'COUNT',
      REAP_MAX)
    redis.call('HSET', meta, 'relist', page[1])
    for i = 1, #page[2], 2 do
      redis.call('ZADD', dead, 'NX', letter.now_ms, page[2][i])
    end
  end
  local extra = redis.call('ZCARD', dead) - letter.dead_max
  if extra > 0 then
    local oldest = redis.call('ZPOPMIN', dead, math.min(extra, REAP_MAX))
    for i = 1, #oldest, 2 do
      redis.call('HDEL', graves, oldest[i])
    end
    redis.call('HINCRBY', meta, 'dropped', #oldest / 2)
  end
end

-- What is stored of a job is none: kept as it is, where it stops nobody.
local function corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  redis.call('HDEL', jobs, id)
  letter.reason = 'CORRUPT record'
  dead_letter(dead, graves, meta, id, {0, 0, '', packed}, letter)
end

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function repair(meta, jobs, ready, delayed, taken, parked, now, aging_us)
  if redis.call('ZCARD', taken) + redis.call('ZCARD', parked) > REPAIR_MAX then
    return false
  end
  for _, entry in ipairs(redis.call('ZRANGE', parked, 0, -1)) do
    local at = string.find(entry, '%z')
    redis.call('ZADD', ready, tonumber(string.sub(entry, at + 1, at + 17)),
      string.sub(entry, at + 18))
  end
  redis.call('DEL', parked)
  local running, is_taken = {}, {}
  for _, receipt in ipairs(redis.call('ZRANGE', taken, 0, -1)) do
    local group, id = read_receipt(receipt)
    if id then
      is_taken[id] = true
      running[group] = (running[group] or 0) + 1
    end
  end
  for _, field in ipairs(redis.call('HKEYS', meta)) do
    if string.sub(field, 1, 2) == 'g:' then
      redis.call('HDEL', meta, field)
    end
  end
  for group, count in pairs(running) do
    if group ~= '' then
      redis.call('HSET', meta, 'g:' .. group, count)
    end
  end
  local cursor, seen = redis.call('HGET', meta, 'rescan') or '0', 0
  repeat
    local page = redis.call('HSCAN', jobs, cursor, 'COUNT', REAP_MAX)
    cursor, seen = page[1], seen + REAP_MAX
    for i = 1, #page[2], 2 do
      local id = page[2][i]
      if not is_taken[id] and not redis.call('ZSCORE', ready, id)
        and not redis.call('ZSCORE', delayed, id) then
        -- One that can't be read becomes a dead letter when it is claimed.
        local job = read_job(jobs, id)
        make_ready(ready, id, now, (job and job[2] or 0) * aging_us)
      end
    end
  until cursor == '0' or seen >= REPAIR_MAX
  redis.call('HSET', meta, 'rescan', cursor, 'counted', '1')
  return true
end
local function step(KEYS, ARGV)
-- Takes due jobs, each for as long as its visibility lasts. Jobs whose time is over are given to
-- others first, or become dead letters after too many attempts, and so does what is stored as a job
-- and is none. If a key of the queue was lost, a claim that finds nothing repairs what it can.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 optional: the marker of an earlier claim whose reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 token (32 bytes, random for each call); 3 limit (1 to 100);
--   4 visibility_ms; 5 attempts_max; 6 group_limit (0: none); 7 ttl_ms; 8 aging_ms; 9 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY
--   next_in_ms (-1: nothing is planned), expired
-- Errors: INVALID token, limit, visibility_ms, group_limit, ttl_ms, aging_ms, and as soon as they
--   are needed attempts_max, dead_max
local meta, jobs, ready, delayed, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local parked, dead, graves = KEYS[7], KEYS[8], KEYS[9]
local token, limit, visibility_ms = ARGV[2], whole(ARGV[3], 1, 100), whole(ARGV[4], 1, TTL_MAX)
local group_limit, ttl_ms = whole(ARGV[6], 0, 1e9), whole(ARGV[7], 1, TTL_MAX)
local aging_ms = whole(ARGV[8], 0, TTL_MAX / PRIORITY_MAX)
if #token ~= TOKEN_BYTES then return refuse('token') end
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not group_limit then return refuse('group_limit') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end
if KEYS[10] then redis.call('DEL', KEYS[10]) end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local touched = false
local set = redis.call('HMGET', meta, 'expires_at', 'swept_ms', 'counted')
if not set[1] or not set[3] then
  -- Rare: nothing was ever scheduled, or a key was lost.
  if redis.call('EXISTS', jobs) == 0 then
    return {'EMPTY', 'next_in_ms', -1, 'expired', 0}, true
  end
  -- `meta` was lost.
  if not whole(ARGV[5], 1, 1e6) then return refuse('attempts_max') end
  if not whole(ARGV[9], 1, 1e9) then return refuse('dead_max') end
  set[1], touched = expiry(meta, now_ms + visibility_ms + ttl_ms, ttl_ms), true
  repair(meta, jobs, ready, delayed, taken, parked, now, aging_ms * 1000)
end

local expired_count = 0
if tonumber(set[2]) ~= now_ms then
  -- Rare: once in a millisecond is often enough to look for what time has changed.
  local attempts_max, dead_max = whole(ARGV[5], 1, 1e6), whole(ARGV[9], 1, 1e9)
  if not attempts_max then return refuse('attempts_max') end
  if not dead_max then return refuse('dead_max') end
  -- Keys that are not what they should be fail here, before anything is written.
  redis.call('HLEN', jobs)
  redis.call('HLEN', graves)
  redis.call('ZCARD', ready)
  redis.call('ZCARD', delayed)
  redis.call('ZCARD', parked)
  redis.call('ZCARD', dead)
  -- Whoever took these has not come back.
  local expired = redis.call('ZRANGE', taken, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, REAP_MAX)
  for i, receipt in ipairs(expired) do
    touched = true
    local group, id = read_receipt(receipt)
    -- What is no receipt goes.
    group, id = group or '', id or ''
    redis.call('ZREM', taken, receipt)
    leave_group(meta, jobs, parked, ready, group)
    local job, packed = read_job(jobs, id)
    if packed then
      local letter = {now_ms = now_ms, dead_max = dead_max}
      corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
    elseif job and (job[5] or job[1] + 1 >= attempts_max) then
      redis.call('HDEL', jobs, id)
      if not job[5] then
        job[1] = job[1] + 1
        local letter = {now_ms = now_ms, reason = 'visibility expired', dead_max = dead_max}
        dead_letter(dead, graves, meta, id, job, letter)
      end
    elseif job then
      job[1] = job[1] + 1
      write_job(jobs, id, job)
      make_ready(ready, id, now + i, job[2] * aging_ms * 1000)
    end
  end
  expired_count = #expired
  if expired_count > 0 then
    redis.call('HINCRBY', meta, 'expired', expired_count)
  end

  -- These have become due.
  local due =
    redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE', 'LIMIT', 0, REAP_MAX, 'WITHSCORES')
  for i = 1, #due, 2 do
    touched = true
    redis.call('ZREM', delayed, due[i])
    local job, packed = read_job(jobs, due[i])
    if job or packed then
      make_ready(ready, due[i], tonumber(due[i + 1]), (job and job[2] or 0) * aging_ms * 1000)
    end
  end
  -- If there was more than one look can see, the next claim looks again.
  if expired_count < REAP_MAX and #due < 2 * REAP_MAX then
    redis.call('HSET', meta, 'swept_ms', now_ms)
  end
end

local claimed, seen, lost = {}, 0, 0
while #claimed < limit and seen < limit + REAP_MAX do
  local popped = redis.call('ZPOPMIN', ready, limit - #claimed)
  if #popped == 0 then
    break
  end
  for i = 1, #popped, 2 do
    seen = seen + 1
    local id = popped[i]
    local job, packed = read_job(jobs, id)
    local group = job and job[3] or ''
    local running = group ~= '' and tonumber(redis.call('HGET', meta, 'g:' .. group) or 0)
    if job and job[5] then
      -- Rare: it was cancelled while another had it.
      redis.call('HDEL', jobs, id)
      touched = true
      unpark(jobs, parked, ready, group)
    elseif job and running and group_limit > 0 and running >= group_limit then
      -- Rare: its group is at its limit.
      touched = true
      park(parked, group, tonumber(popped[i + 1]), id)
    elseif job then
      if running then
        redis.call('HINCRBY', meta, 'g:' .. group, 1)
      end
      -- As `receipt_of` writes it.
      local receipt = token .. ':' .. #group .. ':' .. group .. id
      -- A fraction apart, so that they keep their order if they come back, and none above the
      -- millisecond, so that they come back together.
      local order = (#claimed + 1 - limit) / 1000
      redis.call('ZADD', taken, now_ms + visibility_ms + order, receipt)
      claimed[#claimed + 1] = {id, job[4], job[1] + 1, receipt, group}
    elseif packed then
      -- Rare: what is stored is no job.
      touched = true
      local letter = {now_ms = now_ms, dead_max = whole(ARGV[9], 1, 1e9) or REAP_MAX}
      corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
    else
      lost = lost + 1
    end
  end
end
if lost > 0 then
  touched = true
  redis.call('HINCRBY', meta, 'lost', lost)
end
local is_repaired = false
if #claimed == 0 and redis.call('HLEN', jobs) > redis.call('ZCARD', ready)
  + redis.call('ZCARD', delayed) + redis.call('ZCARD', taken) + redis.call('ZCARD', parked) then
  -- Rare: a set was lost, and its jobs are in none.
  is_repaired = repair(meta, jobs, ready, delayed, taken, parked, now, aging_ms * 1000)
  touched = touched or is_repaired
end

if touched or #claimed > 0 then
  local at, wanted = tonumber(set[1]), now_ms + visibility_ms + ttl_ms
  if at < wanted or touched then
    -- Rare: a quarter of the TTL apart, unless something else has changed.
    at = expiry(meta, wanted, ttl_ms)
    for i = 2, #KEYS do
      redis.call('PEXPIREAT', KEYS[i], at)
    end
  else
    redis.call('PEXPIREAT', taken, at)
  end
end
if #claimed > 0 then
  return {'CLAIMED', 'jobs', claimed, 'expired', expired_count}
end
if is_repaired then
  return {'EMPTY', 'next_in_ms', 0, 'expired', expired_count}
end
if redis.call('ZCARD', ready) > 0 then
  -- More than one call looks at: the next one goes on.
  return {'EMPTY', 'next_in_ms', 0, 'expired', expired_count}, not touched
end
local next_ms = -1
local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if first then
  next_ms = math.max(0, math.ceil(first / 1000) - now_ms)
end
first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
if first and (next_ms < 0 or first - now_ms < next_ms) then
  next_ms = math.max(0, math.ceil(first - now_ms))
end
return {'EMPTY', 'next_in_ms', next_ms, 'expired', expired_count}, not touched
end
redis.register_function{function_name = 'russet_v1_jobs_claim', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 9 or #ARGV < 9 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.
local function expiry_known(meta, jobs, ready, taken)
  local at = redis.call('HGET', meta, 'expires_at')
  if not at then
    at = math.max(redis.call('PEXPIRETIME', jobs), redis.call('PEXPIRETIME', ready),
      redis.call('PEXPIRETIME', taken))
    if at > 0 then
      redis.call('HSET', meta, 'expires_at', at)
      redis.call('PEXPIREAT', meta, at)
    else
      redis.call('DEL', meta)
      return nil
    end
  end
  return at
end

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.
local function read_receipt(receipt)
  if string.sub(receipt, TOKEN_BYTES + 1, TOKEN_BYTES + 3) == ':0:' then
    local id = string.sub(receipt, TOKEN_BYTES + 4)
    return '', id ~= '' and id or nil
  end
  local length, rest = string.match(receipt, '^:(%d+):(.*)$', TOKEN_BYTES + 1)
  length = tonumber(length)
  if length and length < #rest then
    return string.sub(rest, 1, length), string.sub(rest, length + 1)
  end
end

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.
local function unpark(jobs, parked, ready, group)
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  for _ = 1, REAP_MAX do
    local first = redis.call('ZRANGE', parked, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then
      return false
    end
    redis.call('ZREM', parked, first)
    local id = string.sub(first, #group + 19)
    if redis.call('HEXISTS', jobs, id) == 1 then
      redis.call('ZADD', ready, tonumber(string.sub(first, #group + 2, #group + 18)), id)
      return true
    end
  end
  return false
end

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.
local function leave_group(meta, jobs, parked, ready, group)
  if group == '' then
    return false
  end
  if redis.call('HINCRBY', meta, 'g:' .. group, -1) <= 0 then
    redis.call('HDEL', meta, 'g:' .. group)
  end
  return unpark(jobs, parked, ready, group)
end

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Ends a job that was done by whoever holds its receipt.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 parked; 7 optional: bell, without
--   which a job that waited for room in the group is found by the next claim only
-- ARGV: 1 request_ttl_ms; 2 receipt
-- Replies: ACKED; STALE (others have it, or will); GONE (it was ended already)
-- Errors: INVALID receipt
local meta, jobs, ready, taken, parked = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local group, id = read_receipt(ARGV[2])
if not id then return refuse('receipt') end

-- Keys that are not what they should be fail here, before anything is written.
local is_there = redis.call('HEXISTS', jobs, id) == 1
redis.call('HLEN', meta)
if group ~= '' then
  redis.call('ZCARD', ready)
  redis.call('ZCARD', parked)
  if KEYS[7] then redis.call('LLEN', KEYS[7]) end
end
if redis.call('ZREM', taken, ARGV[2]) == 0 then
  return {is_there and 'STALE' or 'GONE'}, true
end
redis.call('HDEL', jobs, id)
-- The first of all, or the first since `meta` was lost.
local is_first = redis.call('HINCRBY', meta, 'acked', 1) == 1
if is_first or group ~= '' then
  -- Rare: jobs of groups make room for others, and the first of all sets the expiry.
  local is_unparked = leave_group(meta, jobs, parked, ready, group)
  local at = expiry_known(meta, jobs, ready, taken)
  if at then
    redis.call('PEXPIREAT', ready, at)
    if is_unparked and KEYS[7] then
      ring(KEYS[7])
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'ACKED'}
end
redis.register_function{function_name = 'russet_v1_jobs_ack', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 6 or #ARGV < 2 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.
local function read_receipt(receipt)
  if string.sub(receipt, TOKEN_BYTES + 1, TOKEN_BYTES + 3) == ':0:' then
    local id = string.sub(receipt, TOKEN_BYTES + 4)
    return '', id ~= '' and id or nil
  end
  local length, rest = string.match(receipt, '^:(%d+):(.*)$', TOKEN_BYTES + 1)
  length = tonumber(length)
  if length and length < #rest then
    return string.sub(rest, 1, length), string.sub(rest, length + 1)
  end
end

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.
local function make_ready(ready, id, due_us, boost_us)
  redis.call('ZADD', ready, due_us - boost_us, id)
end

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.
local function unpark(jobs, parked, ready, group)
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  for _ = 1, REAP_MAX do
    local first = redis.call('ZRANGE', parked, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then
      return false
    end
    redis.call('ZREM', parked, first)
    local id = string.sub(first, #group + 19)
    if redis.call('HEXISTS', jobs, id) == 1 then
      redis.call('ZADD', ready, tonumber(string.sub(first, #group + 2, #group + 18)), id)
      return true
    end
  end
  return false
end

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.
local function leave_group(meta, jobs, parked, ready, group)
  if group == '' then
    return false
  end
  if redis.call('HINCRBY', meta, 'g:' .. group, -1) <= 0 then
    redis.call('HDEL', meta, 'g:' .. group)
  end
  return unpark(jobs, parked, ready, group)
end

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.
local function dead_letter(dead, graves, meta, id, job, letter)
  local name = id
  while redis.call('HEXISTS', graves, name) == 1 do
    name = id .. '~' .. redis.call('HINCRBY', meta, 'letters', 1)
  end
  redis.call('ZADD', dead, letter.now_ms, name)
  redis.call('HSET', graves, name,
    cmsgpack.pack({job[1], job[2], job[3], job[4], letter.reason, id}))
  redis.call('HINCRBY', meta, 'died', 1)
  if redis.call('HLEN', graves) > redis.call('ZCARD', dead) then
    -- The list of them was lost: some are listed again with each new one.
    local page = redis.call('HSCAN', graves, redis.call('HGET', meta, 'relist') or '0', 'COUNT',
      REAP_MAX)
    redis.call('HSET', meta, 'relist', page[1])
    for i = 1, #page[2], 2 do
      redis.call('ZADD', dead, 'NX', letter.now_ms, page[2][i])
    end
  end
  local extra = redis.call('ZCARD', dead) - letter.dead_max
  if extra > 0 then
    local oldest = redis.call('ZPOPMIN', dead, math.min(extra, REAP_MAX))
    for i = 1, #oldest, 2 do
      redis.call('HDEL', graves, oldest[i])
    end
    redis.call('HINCRBY', meta, 'dropped', #oldest / 2)
  end
end

-- What is stored of a job is none: kept as it is, where it stops nobody.
local function corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  redis.call('HDEL', jobs, id)
  letter.reason = 'CORRUPT record'
  dead_letter(dead, graves, meta, id, {0, 0, '', packed}, letter)
end

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Gives a job back that has failed: it runs again after a delay, or is a dead letter after too many
-- attempts.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 delay_ms; 4 reason; 5 attempts_max (0: a dead letter at
--   once); 6 ttl_ms; 7 aging_ms; 8 dead_max; 9 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts, due_ms; DEAD attempts; CANCELLED; STALE (others have it, or will);
--   GONE
-- Errors: INVALID receipt, delay_ms, attempts_max, ttl_ms, aging_ms, dead_max
local meta, jobs, ready, delayed, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local parked, dead, graves, bell = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local receipt, delay_ms, reason = ARGV[2], whole(ARGV[3], 0, TTL_MAX), ARGV[4]
local attempts_max, ttl_ms = whole(ARGV[5], 0, 1e6), whole(ARGV[6], 1, TTL_MAX)
local aging_ms, dead_max = whole(ARGV[7], 0, TTL_MAX / PRIORITY_MAX), whole(ARGV[8], 1, 1e9)
local group, id = read_receipt(receipt)
if not id then return refuse('receipt') end
if not delay_ms then return refuse('delay_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end
if not dead_max then return refuse('dead_max') end

-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', graves)
redis.call('ZCARD', ready)
redis.call('ZCARD', delayed)
redis.call('ZCARD', parked)
redis.call('ZCARD', dead)
redis.call('LLEN', bell)
if redis.call('ZREM', taken, receipt) == 0 then
  return {redis.call('HEXISTS', jobs, id) == 1 and 'STALE' or 'GONE'}, true
end
if leave_group(meta, jobs, parked, ready, group) then
  ring(bell)
end
local job, packed = read_job(jobs, id)
local now = now_us()
local is_counted = ARGV[9] ~= '1'
if job and is_counted then
  job[1] = job[1] + 1
end
local due_us, reply = now + delay_ms * 1000, nil
if packed then
  local letter = {now_ms = math.floor(now / 1000), dead_max = dead_max}
  corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  reply = {'DEAD', 'attempts', 0}
elseif not job then
  reply = {'GONE'}
elseif job[5] then
  redis.call('HDEL', jobs, id)
  reply = {'CANCELLED'}
elseif is_counted and job[1] >= attempts_max then
  redis.call('HDEL', jobs, id)
  local letter = {now_ms = math.floor(now / 1000), reason = reason, dead_max = dead_max}
  dead_letter(dead, graves, meta, id, job, letter)
  reply = {'DEAD', 'attempts', job[1]}
else
  write_job(jobs, id, job)
  if delay_ms > 0 then
    redis.call('ZADD', delayed, due_us, id)
  else
    make_ready(ready, id, now, job[2] * aging_ms * 1000)
  end
  redis.call('HINCRBY', meta, 'retried', 1)
  ring(bell)
  reply = {'RETRIED', 'attempts', job[1], 'due_ms', math.floor(due_us / 1000)}
end
local at = expiry(meta, math.floor(due_us / 1000) + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
end
redis.register_function{function_name = 'russet_v1_jobs_retry', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 10 or #ARGV < 8 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- The holder of a receipt says that it still works on the job.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead; 8 graves
-- ARGV: 1 receipt; 2 visibility_ms, from now on; 3 ttl_ms
-- Replies: EXTENDED deadline_ms; STALE (others have it, or will, or it was ended)
-- Errors: INVALID visibility_ms, ttl_ms
local meta, taken = KEYS[1], KEYS[5]
local visibility_ms, ttl_ms = whole(ARGV[2], 1, TTL_MAX), whole(ARGV[3], 1, TTL_MAX)
if not visibility_ms then return refuse('visibility_ms') end
if not ttl_ms then return refuse('ttl_ms') end

if not redis.call('ZSCORE', taken, ARGV[1]) then
  return {'STALE'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', meta)
local deadline = now_ms() + visibility_ms
redis.call('ZADD', taken, 'XX', 'GT', deadline, ARGV[1])
local at, is_moved = expiry(meta, deadline + ttl_ms, ttl_ms)
if is_moved then
  for i = 1, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return {'EXTENDED', 'deadline_ms', deadline}
end
redis.register_function{function_name = 'russet_v1_jobs_extend', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 8 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.
local function expiry_known(meta, jobs, ready, taken)
  local at = redis.call('HGET', meta, 'expires_at')
  if not at then
    at = math.max(redis.call('PEXPIRETIME', jobs), redis.call('PEXPIRETIME', ready),
      redis.call('PEXPIRETIME', taken))
    if at > 0 then
      redis.call('HSET', meta, 'expires_at', at)
      redis.call('PEXPIREAT', meta, at)
    else
      redis.call('DEL', meta)
      return nil
    end
  end
  return at
end

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.
local function unpark(jobs, parked, ready, group)
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  for _ = 1, REAP_MAX do
    local first = redis.call('ZRANGE', parked, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then
      return false
    end
    redis.call('ZREM', parked, first)
    local id = string.sub(first, #group + 19)
    if redis.call('HEXISTS', jobs, id) == 1 then
      redis.call('ZADD', ready, tonumber(string.sub(first, #group + 2, #group + 18)), id)
      return true
    end
  end
  return false
end

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Takes back a job that nobody has claimed. One that runs is not stopped, but does not run again.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 parked; 6 taken; 7 optional: bell
-- ARGV: 1 id
-- Replies: CANCELLED; RUNNING (it is claimed, or waits for its group); MISSING
local meta, jobs, ready, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local id = ARGV[1]
local job, packed = read_job(jobs, id)
if not job and not packed then
  return {'MISSING'}
end
job = job or {0, 0, '', ''}
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('ZCARD', KEYS[4])
redis.call('ZCARD', parked)
if redis.call('ZREM', ready, id) + redis.call('ZREM', KEYS[4], id) == 0 then
  job[4], job[5] = '', true
  write_job(jobs, id, job)
  return {'RUNNING'}
end
redis.call('HDEL', jobs, id)
if job[3] ~= '' then
  local is_unparked = unpark(jobs, parked, ready, job[3])
  local at = expiry_known(meta, jobs, ready, KEYS[6])
  if at then
    redis.call('PEXPIREAT', ready, at)
    if is_unparked and KEYS[7] then
      ring(KEYS[7])
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'CANCELLED'}
end
redis.register_function{function_name = 'russet_v1_jobs_cancel', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 6 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.
local function make_ready(ready, id, due_us, boost_us)
  redis.call('ZADD', ready, due_us - boost_us, id)
end

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.
local function mark_counted(meta, jobs_before)
  if jobs_before == 0 then
    redis.call('HSET', meta, 'counted', '1')
  end
end

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Makes a job of a dead letter again, with all its attempts before it.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 id of the letter; 3 capacity; 4 ttl_ms; 5 aging_ms
-- Replies: REQUEUED; DUPLICATE (a job of this id waits or runs); FULL; MISSING
-- Errors: INVALID capacity, ttl_ms, aging_ms; CORRUPT letter
local meta, jobs, graves = KEYS[2], KEYS[3], KEYS[9]
local id, capacity, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
local aging_ms = whole(ARGV[5], 0, TTL_MAX / PRIORITY_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end

local job, packed = read_job(graves, id)
if packed or job and type(job[6] or '') ~= 'string' then
  return redis.error_reply('CORRUPT letter')
end
if not job then
  return {'MISSING'}, true
end
local job_id = job[6] or id
if redis.call('HEXISTS', jobs, job_id) == 1 then
  return {'DUPLICATE'}, true
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}, true
end
local now = now_us()
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[4])
redis.call('ZCARD', KEYS[8])
redis.call('LLEN', KEYS[10])
redis.call('HLEN', meta)
mark_counted(meta, jobs_before)
redis.call('ZREM', KEYS[8], id)
redis.call('HDEL', graves, id)
write_job(jobs, job_id, {0, job[2], job[3], job[4]})
make_ready(KEYS[4], job_id, now, job[2] * aging_ms * 1000)
redis.call('HINCRBY', meta, 'requeued', 1)
ring(KEYS[10])
local at = expiry(meta, math.floor(now / 1000) + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'REQUEUED'}
end
redis.register_function{function_name = 'russet_v1_jobs_requeue', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 10 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Reads dead letters, the oldest first.
-- KEYS: 1 dead; 2 graves
-- ARGV: 1 offset; 2 limit (1 to 100)
-- Replies: OK letters (a list of id, payload, attempts, reason, group, died_ms, id of the job)
-- Errors: INVALID offset, limit
local offset, limit = whole(ARGV[1], 0, 1e9), whole(ARGV[2], 1, 100)
if not offset then return refuse('offset') end
if not limit then return refuse('limit') end
local found = redis.call('ZRANGE', KEYS[1], offset, offset + limit - 1, 'WITHSCORES')
local letters = {}
for i = 1, #found, 2 do
  local job, packed = read_job(KEYS[2], found[i])
  job = job or packed and {0, 0, '', packed, 'CORRUPT letter'}
  if job then
    local died_ms = tonumber(found[i + 1])
    letters[#letters + 1] =
      {found[i], job[4], job[1], job[5], job[3], died_ms, job[6] or found[i]}
  end
end
return {'OK', 'letters', letters}
end
redis.register_function{function_name = 'russet_v1_jobs_letters', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Removes a dead letter for good.
-- KEYS: 1 dead; 2 graves
-- ARGV: 1 id of the letter
-- Replies: DISCARDED; MISSING
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
redis.call('ZREM', KEYS[1], ARGV[1])
return {redis.call('HDEL', KEYS[2], ARGV[1]) == 1 and 'DISCARDED' or 'MISSING'}
end
redis.register_function{function_name = 'russet_v1_jobs_discard', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Counts what is in a queue and what has happened to it, in constant time but for `due`, which
-- takes logarithmic time.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead
-- ARGV: 1 aging_ms
-- Replies: OK ready, delayed, due, running, parked, dead, oldest_ready_ms (age), scheduled, acked,
--   retried, expired, died, dropped, requeued,
--   lost
-- Errors: INVALID aging_ms
local aging_ms = whole(ARGV[1], 0, TTL_MAX / PRIORITY_MAX)
if not aging_ms then return refuse('aging_ms') end
local meta = KEYS[1]
local counts = redis.call('HMGET', meta, 'scheduled', 'acked', 'retried', 'expired', 'died',
  'dropped', 'requeued', 'lost')
for i = 1, 8 do
  counts[i] = tonumber(counts[i] or 0)
end
local now = now_us()
local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local job = first[1] and read_job(KEYS[2], first[1])
local ready_us = job and first[2] + job[2] * aging_ms * 1000 or now
return {
  'OK',
  'ready', redis.call('ZCARD', KEYS[3]),
  'delayed', redis.call('ZCARD', KEYS[4]),
  'due', redis.call('ZCOUNT', KEYS[4], '-inf', now),
  'running', redis.call('ZCARD', KEYS[5]),
  'parked', redis.call('ZCARD', KEYS[6]),
  'dead', redis.call('ZCARD', KEYS[7]),
  'oldest_ready_ms', math.max(0, math.floor((now - ready_us) / 1000)),
  'scheduled', counts[1], 'acked', counts[2], 'retried', counts[3], 'expired', counts[4],
  'died', counts[5], 'dropped', counts[6], 'requeued', counts[7],
  'lost', counts[8],
}
end
redis.register_function{function_name = 'russet_v1_jobs_stats', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 7 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.
local function mark_counted(meta, jobs_before)
  if jobs_before == 0 then
    redis.call('HSET', meta, 'counted', '1')
  end
end

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Plans one occurrence of a repeated job. However many plan it, it is one job.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead; 8 graves; 9 bell
-- ARGV: 1 name; 2 occurrence_ms; 3 payload; 4 priority (0 to 255); 5 group (may be empty);
--   6 capacity; 7 ttl_ms
-- Replies: SCHEDULED; PLANNED (it, or a later one, was planned before); FULL
-- Errors: INVALID name, occurrence_ms, priority, group, capacity, ttl_ms
local meta, jobs = KEYS[1], KEYS[2]
local name, occurrence_ms, priority = ARGV[1], whole(ARGV[2], 1, 1e14), whole(ARGV[4], 0, 255)
local capacity, ttl_ms = whole(ARGV[6], 1, 1e9), whole(ARGV[7], 1, TTL_MAX)
if name == '' then return refuse('name') end
if not occurrence_ms then return refuse('occurrence_ms') end
if not priority then return refuse('priority') end
if string.find(ARGV[5], '%z') then return refuse('group') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

local id = name .. '@' .. ARGV[2]
local planned = tonumber(redis.call('HGET', meta, 'c:' .. name) or 0)
if planned >= occurrence_ms or redis.call('HEXISTS', jobs, id) == 1 then
  return {'PLANNED'}
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[4])
redis.call('LLEN', KEYS[9])
mark_counted(meta, jobs_before)
redis.call('HSET', meta, 'c:' .. name, occurrence_ms)
write_job(jobs, id, {0, priority, ARGV[5], ARGV[3]})
redis.call('ZADD', KEYS[4], occurrence_ms * 1000, id)
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(KEYS[9])
local at = expiry(meta, math.max(now_ms(), occurrence_ms) + ttl_ms, ttl_ms)
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED'}
end
redis.register_function{function_name = 'russet_v1_jobs_cron', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 9 or #ARGV < 7 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Says what the time is, and which occurrence of a repeated job was planned last.
-- KEYS: 1 meta
-- ARGV: 1 name
-- Replies: OK now_ms, planned_ms (0: none)
local planned = redis.call('HGET', KEYS[1], 'c:' .. ARGV[1])
return {'OK', 'now_ms', now_ms(), 'planned_ms', tonumber(planned or 0)}
end
redis.register_function{function_name = 'russet_v1_jobs_planned', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.
local function expiry_known(meta, jobs, ready, taken)
  local at = redis.call('HGET', meta, 'expires_at')
  if not at then
    at = math.max(redis.call('PEXPIRETIME', jobs), redis.call('PEXPIRETIME', ready),
      redis.call('PEXPIRETIME', taken))
    if at > 0 then
      redis.call('HSET', meta, 'expires_at', at)
      redis.call('PEXPIREAT', meta, at)
    else
      redis.call('DEL', meta)
      return nil
    end
  end
  return at
end

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.
local function unpark(jobs, parked, ready, group)
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  for _ = 1, REAP_MAX do
    local first = redis.call('ZRANGE', parked, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then
      return false
    end
    redis.call('ZREM', parked, first)
    local id = string.sub(first, #group + 19)
    if redis.call('HEXISTS', jobs, id) == 1 then
      redis.call('ZADD', ready, tonumber(string.sub(first, #group + 2, #group + 18)), id)
      return true
    end
  end
  return false
end

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Forgets a repeated job: the occurrence that is planned does not run, unless it was claimed.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 optional: taken; 6 optional: parked; 7 optional: bell
-- ARGV: 1 name
-- Replies: FORGOTTEN; MISSING
local planned = redis.call('HGET', KEYS[1], 'c:' .. ARGV[1])
if not planned then
  return {'MISSING'}
end
local id = ARGV[1] .. '@' .. planned
local job = read_job(KEYS[2], id)
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
redis.call('HDEL', KEYS[1], 'c:' .. ARGV[1])
if redis.call('ZREM', KEYS[4], id) + redis.call('ZREM', KEYS[3], id) > 0 then
  redis.call('HDEL', KEYS[2], id)
  -- It may have been the one of its group that was let in.
  if job and job[3] ~= '' and KEYS[7] and unpark(KEYS[2], KEYS[6], KEYS[3], job[3]) then
    ring(KEYS[7])
    local at = expiry_known(KEYS[1], KEYS[2], KEYS[3], KEYS[5])
    if at then
      redis.call('PEXPIREAT', KEYS[3], at)
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'FORGOTTEN'}
end
redis.register_function{function_name = 'russet_v1_jobs_forget', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Appends to a list queue. A full one refuses, or loses its oldest item.
-- KEYS: 1 request marker; 2 the list
-- ARGV: 1 request_ttl_ms; 2 payload; 3 capacity; 4 on_full (reject or drop_oldest); 5 ttl_ms
-- Replies: PUSHED length, dropped; FULL
-- Errors: INVALID capacity, on_full, ttl_ms
local capacity, on_full, ttl_ms = whole(ARGV[3], 1, 1e9), ARGV[4], whole(ARGV[5], 1, 1e12)
if not capacity then return refuse('capacity') end
if on_full ~= 'reject' and on_full ~= 'drop_oldest' then return refuse('on_full') end
if not ttl_ms then return refuse('ttl_ms') end

local extra = redis.call('LLEN', KEYS[2]) + 1 - capacity
local dropped = 0
if extra > 0 then
  if on_full == 'reject' then
    return {'FULL'}, true
  end
  dropped = #(redis.call('LPOP', KEYS[2], math.min(extra, 100)) or {})
end
local length = redis.call('RPUSH', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'PUSHED', 'length', length, 'dropped', dropped}
end
redis.register_function{function_name = 'russet_v1_list_push', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes the oldest or the newest item out of a list queue, for good.
-- KEYS: 1 request marker; 2 the list
-- ARGV: 1 request_ttl_ms; 2 which (oldest or newest); 3 ttl_ms
-- Replies: POPPED payload; EMPTY
-- Errors: INVALID which, ttl_ms
local which, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e12)
if which ~= 'oldest' and which ~= 'newest' then return refuse('which') end
if not ttl_ms then return refuse('ttl_ms') end

local payload
if which == 'oldest' then
  payload = redis.call('LPOP', KEYS[2])
else
  payload = redis.call('RPOP', KEYS[2])
end
if not payload then
  return {'EMPTY'}, true
end
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'POPPED', 'payload', payload}
end
redis.register_function{function_name = 'russet_v1_list_pop', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Appends a job to a reliable list queue.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 id; 3 payload; 4 capacity; 5 ttl_ms
-- Replies: SCHEDULED; DUPLICATE; FULL
-- Errors: INVALID id, capacity, ttl_ms
local meta, jobs, id = KEYS[2], KEYS[3], ARGV[2]
local capacity, ttl_ms = whole(ARGV[4], 1, 1e9), whole(ARGV[5], 1, TTL_MAX)
if id == '' then return refuse('id') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

if redis.call('HEXISTS', jobs, id) == 1 then
  return {'DUPLICATE'}, true
end
if redis.call('HLEN', jobs) >= capacity then
  return {'FULL'}, true
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[8])
redis.call('HLEN', meta)
write_job(jobs, id, {0, 0, '', ARGV[3]})
redis.call('RPUSH', KEYS[4], id)
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(KEYS[8])
local at = expiry(meta, now_ms() + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED'}
end
redis.register_function{function_name = 'russet_v1_reliable_push', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 8 or #ARGV < 5 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32

local function receipt_of(token, group, id)
  return token .. ':' .. #group .. ':' .. group .. id
end

-- Gives group and id, or nil.
local function read_receipt(receipt)
  if string.sub(receipt, TOKEN_BYTES + 1, TOKEN_BYTES + 3) == ':0:' then
    local id = string.sub(receipt, TOKEN_BYTES + 4)
    return '', id ~= '' and id or nil
  end
  local length, rest = string.match(receipt, '^:(%d+):(.*)$', TOKEN_BYTES + 1)
  length = tonumber(length)
  if length and length < #rest then
    return string.sub(rest, 1, length), string.sub(rest, length + 1)
  end
end

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.
local function dead_letter(dead, graves, meta, id, job, letter)
  local name = id
  while redis.call('HEXISTS', graves, name) == 1 do
    name = id .. '~' .. redis.call('HINCRBY', meta, 'letters', 1)
  end
  redis.call('ZADD', dead, letter.now_ms, name)
  redis.call('HSET', graves, name,
    cmsgpack.pack({job[1], job[2], job[3], job[4], letter.reason, id}))
  redis.call('HINCRBY', meta, 'died', 1)
  if redis.call('HLEN', graves) > redis.call('ZCARD', dead) then
    -- The list of them was lost: some are listed again with each new one.
    local page = redis.call('HSCAN', graves, redis.call('HGET', meta, 'relist') or '0', 'COUNT',
      REAP_MAX)
    redis.call('HSET', meta, 'relist', page[1])
    for i = 1, #page[2], 2 do
      redis.call('ZADD', dead, 'NX', letter.now_ms, page[2][i])
    end
  end
  local extra = redis.call('ZCARD', dead) - letter.dead_max
  if extra > 0 then
    local oldest = redis.call('ZPOPMIN', dead, math.min(extra, REAP_MAX))
    for i = 1, #oldest, 2 do
      redis.call('HDEL', graves, oldest[i])
    end
    redis.call('HINCRBY', meta, 'dropped', #oldest / 2)
  end
end

-- What is stored of a job is none: kept as it is, where it stops nobody.
local function corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  redis.call('HDEL', jobs, id)
  letter.reason = 'CORRUPT record'
  dead_letter(dead, graves, meta, id, {0, 0, '', packed}, letter)
end

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Takes the first jobs of a reliable list queue. Jobs whose time is over come to its front again
-- before, or become dead letters after too many attempts, and so does what is stored as a job and
-- is none.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 optional: the
--   marker of an earlier claim whose reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 token (32 bytes, random for each call); 3 limit (1 to 100);
--   4 visibility_ms; 5 attempts_max; 6 ttl_ms; 7 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY
--   next_in_ms (-1: no job runs), expired
-- Errors: INVALID token, limit, visibility_ms, attempts_max, ttl_ms, dead_max
local meta, jobs, ready, taken, dead, graves =
  KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local token, limit, visibility_ms = ARGV[2], whole(ARGV[3], 1, 100), whole(ARGV[4], 1, TTL_MAX)
local attempts_max, ttl_ms = whole(ARGV[5], 1, 1e6), whole(ARGV[6], 1, TTL_MAX)
local dead_max = whole(ARGV[7], 1, 1e9)
if #token ~= TOKEN_BYTES then return refuse('token') end
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end
if KEYS[8] then redis.call('DEL', KEYS[8]) end

local now = now_ms()
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', graves)
redis.call('LLEN', ready)
redis.call('ZCARD', dead)
-- The latest first, so that the earliest comes to the front.
local expired = redis.call('ZRANGE', taken, '-inf', now, 'BYSCORE', 'LIMIT', 0, REAP_MAX)
for i = #expired, 1, -1 do
  local _, id = read_receipt(expired[i])
  redis.call('ZREM', taken, expired[i])
  -- What is no receipt goes.
  local job, packed = read_job(jobs, id or '')
  if packed then
    corrupt_letter(dead, graves, meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
  elseif job then
    job[1] = job[1] + 1
    if job[1] >= attempts_max then
      redis.call('HDEL', jobs, id)
      local letter = {now_ms = now, reason = 'visibility expired', dead_max = dead_max}
      dead_letter(dead, graves, meta, id, job, letter)
    else
      write_job(jobs, id, job)
      redis.call('LPUSH', ready, id)
    end
  end
end
if #expired > 0 then
  redis.call('HINCRBY', meta, 'expired', #expired)
end

local claimed, lost, corrupt = {}, 0, 0
while #claimed < limit and lost + corrupt < REAP_MAX do
  local popped = redis.call('LPOP', ready, limit - #claimed) or {}
  if #popped == 0 then
    break
  end
  for _, id in ipairs(popped) do
    local job, packed = read_job(jobs, id)
    if packed then
      corrupt = corrupt + 1
      corrupt_letter(dead, graves, meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
    elseif job then
      local receipt = receipt_of(token, '', id)
      -- A fraction apart, so that they keep their order if they come back, and below the
      -- millisecond, so that they come back together.
      local order = (#claimed - limit) / 1000
      redis.call('ZADD', taken, now + visibility_ms + order, receipt)
      claimed[#claimed + 1] = {id, job[4], job[1] + 1, receipt, ''}
    else
      lost = lost + 1
    end
  end
end
if lost > 0 then
  redis.call('HINCRBY', meta, 'lost', lost)
end
-- A list or set was lost, and its jobs are in none: they come back, some with each call.
local known = redis.call('ZCARD', taken) + redis.call('LLEN', ready)
local is_repaired = #claimed == 0 and known <= REPAIR_MAX and redis.call('HLEN', jobs) > known
if is_repaired then
  local is_taken = {}
  for _, receipt in ipairs(redis.call('ZRANGE', taken, 0, REPAIR_MAX - 1)) do
    local _, id = read_receipt(receipt)
    is_taken[id or ''] = true
  end
  for _, id in ipairs(redis.call('LRANGE', ready, 0, REPAIR_MAX - 1)) do
    is_taken[id] = true
  end
  local page = redis.call('HSCAN', jobs, redis.call('HGET', meta, 'rescan') or '0', 'COUNT',
    REPAIR_MAX)
  redis.call('HSET', meta, 'rescan', page[1])
  for i = 1, #page[2], 2 do
    if not is_taken[page[2][i]] then
      redis.call('RPUSH', ready, page[2][i])
    end
  end
end
local is_touched = #expired > 0 or lost > 0 or corrupt > 0 or is_repaired
if #claimed > 0 or is_touched then
  local at, is_moved = expiry(meta, now + visibility_ms + ttl_ms, ttl_ms)
  if is_moved or is_touched then
    for i = 2, #KEYS do
      redis.call('PEXPIREAT', KEYS[i], at)
    end
  else
    redis.call('PEXPIREAT', taken, at)
  end
end
if #claimed > 0 then
  return {'CLAIMED', 'jobs', claimed, 'expired', #expired}
end
local first = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
local next_ms = first and math.max(0, math.ceil(first - now)) or -1
if is_repaired or redis.call('LLEN', ready) > 0 then
  next_ms = 0
end
return {'EMPTY', 'next_in_ms', next_ms, 'expired', #expired}, not is_touched
end
redis.register_function{function_name = 'russet_v1_reliable_take', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 7 or #ARGV < 7 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.
local function read_receipt(receipt)
  if string.sub(receipt, TOKEN_BYTES + 1, TOKEN_BYTES + 3) == ':0:' then
    local id = string.sub(receipt, TOKEN_BYTES + 4)
    return '', id ~= '' and id or nil
  end
  local length, rest = string.match(receipt, '^:(%d+):(.*)$', TOKEN_BYTES + 1)
  length = tonumber(length)
  if length and length < #rest then
    return string.sub(rest, 1, length), string.sub(rest, length + 1)
  end
end

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.
local function dead_letter(dead, graves, meta, id, job, letter)
  local name = id
  while redis.call('HEXISTS', graves, name) == 1 do
    name = id .. '~' .. redis.call('HINCRBY', meta, 'letters', 1)
  end
  redis.call('ZADD', dead, letter.now_ms, name)
  redis.call('HSET', graves, name,
    cmsgpack.pack({job[1], job[2], job[3], job[4], letter.reason, id}))
  redis.call('HINCRBY', meta, 'died', 1)
  if redis.call('HLEN', graves) > redis.call('ZCARD', dead) then
    -- The list of them was lost: some are listed again with each new one.
    local page = redis.call('HSCAN', graves, redis.call('HGET', meta, 'relist') or '0', 'COUNT',
      REAP_MAX)
    redis.call('HSET', meta, 'relist', page[1])
    for i = 1, #page[2], 2 do
      redis.call('ZADD', dead, 'NX', letter.now_ms, page[2][i])
    end
  end
  local extra = redis.call('ZCARD', dead) - letter.dead_max
  if extra > 0 then
    local oldest = redis.call('ZPOPMIN', dead, math.min(extra, REAP_MAX))
    for i = 1, #oldest, 2 do
      redis.call('HDEL', graves, oldest[i])
    end
    redis.call('HINCRBY', meta, 'dropped', #oldest / 2)
  end
end

-- What is stored of a job is none: kept as it is, where it stops nobody.
local function corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  redis.call('HDEL', jobs, id)
  letter.reason = 'CORRUPT record'
  dead_letter(dead, graves, meta, id, {0, 0, '', packed}, letter)
end

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Gives a job back to a reliable list queue, to its end, or to the dead letters after too many
-- attempts; one whose attempt does not count, to its front.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 reason; 4 attempts_max (0: a dead letter at once); 5 ttl_ms;
--   6 dead_max; 7 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts; DEAD attempts; STALE (others have it, or will); GONE
-- Errors: INVALID receipt, attempts_max, ttl_ms, dead_max
local meta, jobs, ready, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local receipt, attempts_max = ARGV[2], whole(ARGV[4], 0, 1e6)
local ttl_ms, dead_max = whole(ARGV[5], 1, TTL_MAX), whole(ARGV[6], 1, 1e9)
local _, id = read_receipt(receipt)
if not id then return refuse('receipt') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end

-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', KEYS[7])
redis.call('LLEN', ready)
redis.call('LLEN', KEYS[8])
redis.call('ZCARD', KEYS[6])
if redis.call('ZREM', taken, receipt) == 0 then
  return {redis.call('HEXISTS', jobs, id) == 1 and 'STALE' or 'GONE'}, true
end
local job, packed = read_job(jobs, id)
if not job and not packed then
  return {'GONE'}
end
local now, reply = now_ms(), nil
local is_counted = ARGV[7] ~= '1'
if job and is_counted then
  job[1] = job[1] + 1
end
if packed then
  corrupt_letter(KEYS[6], KEYS[7], meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
  reply = {'DEAD', 'attempts', 0}
elseif is_counted and job[1] >= attempts_max then
  redis.call('HDEL', jobs, id)
  local letter = {now_ms = now, reason = ARGV[3], dead_max = dead_max}
  dead_letter(KEYS[6], KEYS[7], meta, id, job, letter)
  reply = {'DEAD', 'attempts', job[1]}
else
  write_job(jobs, id, job)
  if is_counted then
    redis.call('RPUSH', ready, id)
  else
    redis.call('LPUSH', ready, id)
  end
  redis.call('HINCRBY', meta, 'retried', 1)
  ring(KEYS[8])
  reply = {'RETRIED', 'attempts', job[1]}
end
local at = expiry(meta, now + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
end
redis.register_function{function_name = 'russet_v1_reliable_retry', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 8 or #ARGV < 6 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a job queue share. Scores of `ready` and `delayed` are microseconds, those of
-- `taken` and `dead` milliseconds.
local REAP_MAX = 100
local REPAIR_MAX = 10000
local PRIORITY_MAX = 255
local TTL_MAX = 1e12


-- All keys of a queue expire at one moment, which `meta` holds. Gives that moment, and whether it
-- had to be moved to be no earlier than `wanted`: then every key has to be told.
local function expiry(meta, wanted, ttl_ms)
  local at = tonumber(redis.call('HGET', meta, 'expires_at') or 0)
  if at >= wanted then
    return at, false
  end
  at = wanted + math.floor(ttl_ms / 4)
  redis.call('HSET', meta, 'expires_at', at)
  return at, true
end

-- When all keys of a queue expire, for steps that are not told a TTL. If `meta` was lost it is as
-- one of the others says; if those are gone too, there is nothing to keep.

-- A receipt names who took the job, its group and the job: `token:5:groupid`.
local TOKEN_BYTES = 32


-- Gives group and id, or nil.

-- A job in `jobs`: failed attempts, priority, group, payload, and whether it is cancelled.
local function write_job(jobs, id, job)
  redis.call('HSET', jobs, id, cmsgpack.pack(job))
end

-- Gives nil and what is stored, if that is no job.
local function read_job(jobs, id)
  local packed = redis.call('HGET', jobs, id)
  if not packed then
    return nil
  end
  local is_read, job = pcall(cmsgpack.unpack, packed)
  if is_read and type(job) == 'table' and type(job[1]) == 'number' and type(job[2]) == 'number'
    and type(job[3]) == 'string' and type(job[4]) == 'string' then
    return job
  end
  return nil, packed
end

-- Wakes a worker that waits.
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- A job of priority p goes before those that are due up to p times `aging_us` earlier.

-- The first job of a group that waits for room in it may run: says whether there was one. Those
-- whose content was lost go.

-- A job of a group waits until another has ended.

-- A job of a group runs no more: says whether another may.

-- How many run of each group is known from the first job on, until `meta` is lost.

-- To the dead letters. The oldest of too many is dropped, and counted. The letter of an earlier job
-- of the same id stays: this one has a number behind the id.

-- What is stored of a job is none: kept as it is, where it stops nobody.

-- Repairs a queue of which a key was lost. Groups are counted anew, jobs that wait for room in one are
-- looked at again, and jobs that no set has are ready. Says whether it could.
local function step(KEYS, ARGV)
-- Makes a job of a dead letter of a reliable list queue, with all its attempts before it.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 id of the letter; 3 capacity; 4 ttl_ms
-- Replies: REQUEUED; DUPLICATE (a job of this id waits or runs); FULL; MISSING
-- Errors: INVALID capacity, ttl_ms; CORRUPT letter
local meta, jobs, graves = KEYS[2], KEYS[3], KEYS[7]
local id, capacity, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

local job, packed = read_job(graves, id)
if packed or job and type(job[6] or '') ~= 'string' then
  return redis.error_reply('CORRUPT letter')
end
if not job then
  return {'MISSING'}, true
end
local job_id = job[6] or id
if redis.call('HEXISTS', jobs, job_id) == 1 then
  return {'DUPLICATE'}, true
end
if redis.call('HLEN', jobs) >= capacity then
  return {'FULL'}, true
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[8])
redis.call('HLEN', meta)
redis.call('ZREM', KEYS[6], id)
redis.call('HDEL', graves, id)
write_job(jobs, job_id, {0, 0, '', job[4]})
redis.call('RPUSH', KEYS[4], job_id)
redis.call('HINCRBY', meta, 'requeued', 1)
ring(KEYS[8])
local at = expiry(meta, now_ms() + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'REQUEUED'}
end
redis.register_function{function_name = 'russet_v1_reliable_requeue', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 8 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts what is in a reliable list queue and what has happened to it, in constant time.
-- KEYS: 1 meta; 2 ready; 3 taken; 4 dead
-- Replies: OK ready, running, dead, scheduled, acked, retried, expired, died, dropped, requeued,
--   lost
local counts = redis.call('HMGET', KEYS[1], 'scheduled', 'acked', 'retried', 'expired', 'died',
  'dropped', 'requeued', 'lost')
for i = 1, 8 do
  counts[i] = tonumber(counts[i] or 0)
end
return {
  'OK',
  'ready', redis.call('LLEN', KEYS[2]),
  'running', redis.call('ZCARD', KEYS[3]),
  'dead', redis.call('ZCARD', KEYS[4]),
  'scheduled', counts[1], 'acked', counts[2], 'retried', counts[3], 'expired', counts[4],
  'died', counts[5], 'dropped', counts[6], 'requeued', counts[7],
  'lost', counts[8],
}
end
redis.register_function{function_name = 'russet_v1_reliable_stats', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.
local function keep(stream, keep_ms)
  if redis.call('PTTL', stream) < keep_ms then
    redis.call('PEXPIRE', stream, keep_ms)
  end
end

-- Ends an entry.

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- Adds an entry to a work stream.
-- KEYS: 1 request marker; 2 the stream
-- ARGV: 1 request_ttl_ms; 2 payload; 3 capacity; 4 ttl_ms
-- Replies: ADDED id; FULL
-- Errors: INVALID capacity, ttl_ms
local capacity, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

if redis.call('XLEN', KEYS[2]) >= capacity then
  return {'FULL'}, true
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[2], GROUP, '0', 'MKSTREAM')
end
local id = redis.call('XADD', KEYS[2], '*', 'payload', ARGV[2])
keep(KEYS[2], ttl_ms)
return {'ADDED', 'id', id}
end
redis.register_function{function_name = 'russet_v1_stream_add', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.

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
local function step(KEYS, ARGV)
-- Takes entries of a work stream: first those that were delivered and not acknowledged in time,
-- which become dead letters after too many attempts, then new ones.
-- KEYS: 1 request marker; 2 the stream; 3 dead; 4 optional: the marker of an earlier claim whose
--   reply has arrived, which goes
-- ARGV: 1 request_ttl_ms; 2 limit (1 to 100); 3 visibility_ms; 4 attempts_max; 5 ttl_ms; 6 dead_max
-- Replies: CLAIMED jobs (a list of id, payload, attempt, receipt, group), expired; EMPTY expired,
--   last_id (what comes behind it is new: XREAD can wait for that)
-- Errors: INVALID limit, visibility_ms, attempts_max, ttl_ms, dead_max
local stream, dead = KEYS[2], KEYS[3]
local limit, visibility_ms = whole(ARGV[2], 1, 100), whole(ARGV[3], 1, TTL_MAX)
local attempts_max, ttl_ms = whole(ARGV[4], 1, 1e6), whole(ARGV[5], 1, TTL_MAX)
local dead_max = whole(ARGV[6], 1, 1e9)
if not limit then return refuse('limit') end
if not visibility_ms then return refuse('visibility_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end
-- A key that is not what it should be fails here, before an entry is claimed.
redis.call('XLEN', dead)
if KEYS[4] then redis.call('DEL', KEYS[4]) end

if redis.call('EXISTS', stream) == 0 then
  return {'EMPTY', 'expired', 0, 'last_id', '0-0'}, true
end
local stale = redis.pcall('XPENDING', stream, GROUP, 'IDLE', visibility_ms, '-', '+', limit)
if stale.err then
  -- The stream was made by another program.
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0')
  stale = {}
end
local jobs, expired = {}, 0
local function give(id, fields, count)
  local payload, attempt = payload_of(fields), attempts_of(count)
  if payload then
    jobs[#jobs + 1] = {id, payload, attempt, id .. ' ' .. string.format('%.0f', count), ''}
  else
    local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempt}
    letter.reason = 'it has no field payload'
    dead_letter(stream, dead, id, letter)
  end
end
for _, pending in ipairs(stale) do
  local id, attempts = pending[1], attempts_of(pending[4])
  -- One that was given back has waited for its time, and is not late.
  if pending[2] ~= WAITING then
    expired = expired + 1
  end
  if attempts >= attempts_max then
    local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempts}
    letter.reason = 'visibility expired'
    dead_letter(stream, dead, id, letter)
  else
    local count = pending[4] + CLAIMED_AGAIN + 1
    local entry = redis.call('XCLAIM', stream, GROUP, CONSUMER, visibility_ms, id, 'RETRYCOUNT',
      string.format('%.0f', count))[1]
    if entry then
      give(id, entry[2], count)
    end
  end
end
if #jobs < limit then
  local read = redis.call('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', limit - #jobs,
    'STREAMS', stream, '>')
  for _, entry in ipairs(read and read[1][2] or {}) do
    give(entry[1], entry[2], 1)
  end
end
if #jobs == 0 then
  -- Whatever comes behind the last entry that there is, is new.
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  return {'EMPTY', 'expired', expired, 'last_id', last and last[1] or '0-0'}, #stale == 0
end
keep(stream, visibility_ms + ttl_ms)
return {'CLAIMED', 'jobs', jobs, 'expired', expired}
end
redis.register_function{function_name = 'russet_v1_stream_claim', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 6 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
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


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.

-- Ends an entry.
local function remove(stream, id)
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
end

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- Ends an entry of a work stream that was done by whoever holds its last delivery.
-- KEYS: 1 request marker; 2 the stream
-- ARGV: 1 request_ttl_ms; 2 receipt
-- Replies: ACKED; STALE (it was given back, or delivered again); GONE (it was ended already)
-- Errors: INVALID receipt
local id, delivery = read_receipt(ARGV[2])
if not id then return refuse('receipt') end

local count = delivery_of(KEYS[2], id)
if count ~= delivery then
  return {count and 'STALE' or 'GONE'}, true
end
remove(KEYS[2], id)
return {'ACKED'}
end
redis.register_function{function_name = 'russet_v1_stream_ack', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
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
local function step(KEYS, ARGV)
-- Gives an entry of a work stream back: it is delivered again after a delay of at most the
-- visibility, or becomes a dead letter after too many attempts. Its receipt is worth nothing then.
-- KEYS: 1 request marker; 2 the stream; 3 dead
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 delay_ms; 4 reason; 5 attempts_max (0: a dead letter at
--   once); 6 visibility_ms; 7 ttl_ms; 8 dead_max; 9 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts; DEAD attempts; STALE (it was given back, or delivered again);
--   GONE
-- Errors: INVALID receipt, delay_ms, attempts_max, visibility_ms, ttl_ms, dead_max
local stream = KEYS[2]
local id, delivery = read_receipt(ARGV[2])
local delay_ms, attempts_max = whole(ARGV[3], 0, TTL_MAX), whole(ARGV[5], 0, 1e6)
local visibility_ms, ttl_ms = whole(ARGV[6], 1, TTL_MAX), whole(ARGV[7], 1, TTL_MAX)
local dead_max = whole(ARGV[8], 1, 1e9)
if not id then return refuse('receipt') end
if not delay_ms then return refuse('delay_ms') end
if not attempts_max then return refuse('attempts_max') end
if not visibility_ms then return refuse('visibility_ms') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end

local count = delivery_of(stream, id)
if count ~= delivery then
  return {count and 'STALE' or 'GONE'}, true
end
if ARGV[9] == '1' then
  count = count - 1
end
local attempts = attempts_of(count)
if ARGV[9] ~= '1' and attempts >= attempts_max then
  local letter = {dead_max = dead_max, ttl_ms = ttl_ms, attempts = attempts, reason = ARGV[4]}
  dead_letter(stream, KEYS[3], id, letter)
  return {'DEAD', 'attempts', attempts}
end
local idle = math.max(0, visibility_ms - delay_ms)
redis.call('XCLAIM', stream, GROUP, WAITING, 0, id, 'IDLE', idle, 'RETRYCOUNT',
  string.format('%.0f', count), 'JUSTID')
keep(stream, visibility_ms - idle + ttl_ms)
return {'RETRIED', 'attempts', attempts}
end
redis.register_function{function_name = 'russet_v1_stream_retry', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 8 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
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


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.
local function keep(stream, keep_ms)
  if redis.call('PTTL', stream) < keep_ms then
    redis.call('PEXPIRE', stream, keep_ms)
  end
end

-- Ends an entry.

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- The holder of an entry of a work stream says that it still works on it.
-- KEYS: 1 the stream
-- ARGV: 1 receipt; 2 ttl_ms; 3 optional: visibility_ms, for which the entry is kept from now on
-- Replies: EXTENDED; STALE (it was given back, delivered again, or ended)
-- Errors: INVALID receipt, ttl_ms, visibility_ms
local id, delivery = read_receipt(ARGV[1])
local ttl_ms, visibility_ms = whole(ARGV[2], 1, TTL_MAX), whole(ARGV[3] or '0', 0, TTL_MAX)
if not id then return refuse('receipt') end
if not ttl_ms then return refuse('ttl_ms') end
if not visibility_ms then return refuse('visibility_ms') end
if delivery_of(KEYS[1], id) ~= delivery then
  return {'STALE'}
end
redis.call('XCLAIM', KEYS[1], GROUP, CONSUMER, 0, id, 'IDLE', 0, 'JUSTID')
keep(KEYS[1], visibility_ms + ttl_ms)
return {'EXTENDED'}
end
redis.register_function{function_name = 'russet_v1_stream_extend', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.

-- Ends an entry.

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- Reads dead letters of a work stream, the oldest first.
-- KEYS: 1 dead
-- ARGV: 1 after (an id, or - for the first); 2 limit (1 to 100)
-- Replies: OK letters (a list of id, payload, attempts, reason, group, died_ms,
--   id of the job, which is empty)
-- Errors: INVALID limit
local limit = whole(ARGV[2], 1, 100)
if not limit then return refuse('limit') end
local from = ARGV[1] == '-' and '-' or '(' .. ARGV[1]
local letters = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', limit)) do
  local fields = entry[2]
  local died_ms = string.match(entry[1], '^%d+')
  letters[#letters + 1] = {entry[1], fields[2], fields[6], fields[4], '', died_ms, ''}
end
return {'OK', 'letters', letters}
end
redis.register_function{function_name = 'russet_v1_stream_letters', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.
local function keep(stream, keep_ms)
  if redis.call('PTTL', stream) < keep_ms then
    redis.call('PEXPIRE', stream, keep_ms)
  end
end

-- Ends an entry.

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- Adds a dead letter to its work stream again.
-- KEYS: 1 request marker; 2 the stream; 3 dead
-- ARGV: 1 request_ttl_ms; 2 id; 3 capacity; 4 ttl_ms
-- Replies: REQUEUED; FULL; MISSING
-- Errors: INVALID capacity, ttl_ms
local capacity, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

local letter = redis.call('XRANGE', KEYS[3], ARGV[2], ARGV[2])[1]
if not letter then
  return {'MISSING'}, true
end
if redis.call('XLEN', KEYS[2]) >= capacity then
  return {'FULL'}, true
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[2], GROUP, '0', 'MKSTREAM')
end
redis.call('XADD', KEYS[2], '*', 'payload', letter[2][2])
keep(KEYS[2], ttl_ms)
redis.call('XDEL', KEYS[3], ARGV[2])
return {'REQUEUED'}
end
redis.register_function{function_name = 'russet_v1_stream_requeue', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 4 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a work stream share. It has one group. Entries that are worked on are pending
-- with one consumer, those that were given back and wait for their time with another. The delivery
-- count of an entry has its attempts in its lower digits and, above them, how often it was claimed
-- again: no two deliveries have the same count. Entry and count, `1700000000000-0 10000002`, are
-- the receipt.
local GROUP, CONSUMER, WAITING = 'workers', 'worker', 'waiting'
local TTL_MAX = 1e12
local CLAIMED_AGAIN = 1e7

-- Gives the id of the entry and the count of the delivery, or nil.

-- The count of the delivery of an entry that is worked on, 0 for one that waits for its next, nil
-- for one that was ended.


-- The field `payload` of an entry, or nil.

-- The stream stays until what was claimed or given back is due, and for a TTL more.

-- Ends an entry.

-- To the dead letters, of which the oldest are dropped if there are too many.
local function step(KEYS, ARGV)
-- Counts what is in a work stream, in constant time.
-- KEYS: 1 the stream; 2 dead
-- Replies: OK lag (entries that were never delivered), running, waiting (given back, for their time),
--   dead, oldest_ms (age)
local length = redis.call('XLEN', KEYS[1])
local pending = redis.pcall('XPENDING', KEYS[1], GROUP)
local delivered, waiting = not pending.err and pending[1] or 0, 0
for _, consumer in ipairs(not pending.err and pending[4] or {}) do
  if consumer[1] == WAITING then
    waiting = tonumber(consumer[2])
  end
end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local age = first and math.max(0, now_ms() - tonumber(string.match(first[1], '^%d+'))) or 0
return {
  'OK',
  'lag', length - delivered,
  'running', delivered - waiting,
  'waiting', waiting,
  'dead', redis.call('XLEN', KEYS[2]),
  'oldest_ms', age,
}
end
redis.register_function{function_name = 'russet_v1_stream_stats', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Adds to the score of a member of a leaderboard, sets it, or raises it. The entry of a member has
-- the moment of its last change before its name, so that among equals the first is ahead.
-- KEYS: 1 request marker; 2 the board; 3 entries by member; 4 mark of a closed board
-- ARGV: 1 request_ttl_ms; 2 member; 3 score; 4 ADD, SET or BEST; 5 start_ms and 6 end_ms of the
-- period, end_ms 0 for none; 7 ttl_ms after the end, or after the last change without an end;
-- 8 members_max
-- Replies: KEPT score; BELOW score (the board is full of higher ones); CLOSED; PERIOD now_ms
-- Errors: INVALID member, score, how, period, ttl_ms, members_max
local SCORE_MAX, TRIM_MAX = 9007199254740991, 1000
local member, how = ARGV[2], ARGV[4]
local given = whole(ARGV[3], -SCORE_MAX, SCORE_MAX)
local start_ms, end_ms = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15)
local ttl_ms, members_max = whole(ARGV[7], 1, 1e13), whole(ARGV[8], 1, 1e9)
if member == '' then return refuse('member') end
if not given then return refuse('score') end
if how ~= 'ADD' and how ~= 'SET' and how ~= 'BEST' then return refuse('how') end
if not start_ms or not end_ms then return refuse('period') end
if not ttl_ms then return refuse('ttl_ms') end
if not members_max then return refuse('members_max') end

local now = now_ms()
if end_ms > 0 and (now < start_ms or now >= end_ms) then
  return {'PERIOD', 'now_ms', now}, true
end
if redis.call('EXISTS', KEYS[4]) == 1 then return {'CLOSED'}, true end

local before = redis.call('HGET', KEYS[3], member)
if not before then
  -- If one of the two was lost the other says who is on the board, or belongs to nothing.
  local size = redis.call('ZCARD', KEYS[2])
  if size == 0 then
    redis.call('UNLINK', KEYS[3])
  elseif redis.call('HLEN', KEYS[3]) < size then
    for first = 0, size - 1, TRIM_MAX do
      for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], first, first + TRIM_MAX - 1)) do
        redis.call('HSET', KEYS[3], string.sub(entry, 16), entry)
      end
    end
    before = redis.call('HGET', KEYS[3], member)
  end
end
local score_before = before and tonumber(redis.call('ZSCORE', KEYS[2], before))
local score = given
if how == 'ADD' then
  score = (score_before or 0) + given
elseif how == 'BEST' and score_before and score_before > given then
  score = score_before
end
if score > SCORE_MAX or score < -SCORE_MAX then return refuse('score') end

if score ~= score_before then
  if before then redis.call('ZREM', KEYS[2], before) end
  local entry = string.format('%014.0f:', 99999999999999 - now) .. member
  redis.call('ZADD', KEYS[2], score, entry)
  redis.call('HSET', KEYS[3], member, entry)
  local excess = math.min(redis.call('ZCARD', KEYS[2]) - members_max, TRIM_MAX)
  if excess > 0 then
    for _, lowest in ipairs(redis.call('ZRANGE', KEYS[2], 0, excess - 1)) do
      redis.call('HDEL', KEYS[3], string.sub(lowest, 16))
    end
    redis.call('ZREMRANGEBYRANK', KEYS[2], 0, excess - 1)
  end
end
local expires_at = (end_ms > 0 and end_ms or now) + ttl_ms
redis.call('PEXPIREAT', KEYS[2], expires_at)
redis.call('PEXPIREAT', KEYS[3], expires_at)
local is_kept = redis.call('HEXISTS', KEYS[3], member) == 1
return {is_kept and 'KEPT' or 'BELOW', 'score', score}
end
redis.register_function{function_name = 'russet_v1_ranking_add', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 8 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Takes a member off a leaderboard.
-- KEYS: 1 the board; 2 entries by member; 3 mark of a closed board
-- ARGV: 1 member; 2 start_ms and 3 end_ms of the period, end_ms 0 for none
-- Replies: REMOVED; MISSING; CLOSED; PERIOD now_ms
-- Errors: INVALID period
local start_ms, end_ms = whole(ARGV[2], 0, 1e15), whole(ARGV[3], 0, 1e15)
if not start_ms or not end_ms then return refuse('period') end
local now = now_ms()
if end_ms > 0 and (now < start_ms or now >= end_ms) then return {'PERIOD', 'now_ms', now} end
if redis.call('EXISTS', KEYS[3]) == 1 then return {'CLOSED'} end
local entry = redis.call('HGET', KEYS[2], ARGV[1])
if not entry then return {'MISSING'} end
redis.call('ZREM', KEYS[1], entry)
redis.call('HDEL', KEYS[2], ARGV[1])
return {'REMOVED'}
end
redis.register_function{function_name = 'russet_v1_ranking_remove', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads a page of a leaderboard, the highest first.
-- KEYS: 1 the board
-- ARGV: 1 offset; 2 count; 3 start_ms and 4 end_ms of the present period, end_ms 0 for any
-- Replies: OK size, above (how many have a higher score than the first of the page), entries
-- (entry, score, ...); PERIOD now_ms
-- Errors: INVALID offset, count, period
local offset, count = whole(ARGV[1], 0, 1e9), whole(ARGV[2], 1, 1000)
local start_ms, end_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[4], 0, 1e15)
if not offset then return refuse('offset') end
if not count then return refuse('count') end
if not start_ms or not end_ms then return refuse('period') end
if end_ms > 0 then
  local now = now_ms()
  if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
end
local entries = redis.call('ZRANGE', KEYS[1], offset, offset + count - 1, 'REV', 'WITHSCORES')
local above = 0
if entries[2] then above = redis.call('ZCOUNT', KEYS[1], '(' .. entries[2], '+inf') end
return {'OK', 'size', redis.call('ZCARD', KEYS[1]), 'above', above, 'entries', entries}
end
redis.register_function{function_name = 'russet_v1_ranking_page', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Finds where a member of a leaderboard stands, or where an entry of another shard would, and who
-- stands around it.
-- KEYS: 1 the board; 2 entries by member
-- ARGV: 1 member, or empty to look for an entry; 2 entry; 3 its score; 4 radius; 5 start_ms and
-- 6 end_ms of the present period, end_ms 0 for any
-- Replies: OK entry, score, above (how many have a higher score), before (how many stand before
-- it), first (place of the first of the entries, from 0), entries (entry, score, ...); MISSING;
-- PERIOD now_ms
-- Errors: INVALID radius, score, period
local SCORE_MAX = 9007199254740991
local member, entry, score = ARGV[1], ARGV[2], whole(ARGV[3], -SCORE_MAX, SCORE_MAX)
local radius = whole(ARGV[4], 0, 500)
local start_ms, end_ms = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15)
if not radius then return refuse('radius') end
if member == '' and not score then return refuse('score') end
if not start_ms or not end_ms then return refuse('period') end
if end_ms > 0 then
  local now = now_ms()
  if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
end

-- By bytes, as the server sorts them: `<` may follow the server's locale.
local function is_ahead(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local before
if member ~= '' then
  entry = redis.call('HGET', KEYS[2], member)
  if not entry then return {'MISSING'} end
  score = tonumber(redis.call('ZSCORE', KEYS[1], entry))
  -- The board was lost.
  if not score then return {'MISSING'} end
  before = redis.call('ZREVRANK', KEYS[1], entry)
end
local above = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', score), '+inf')
if member == '' then
  -- Between those with a higher score and those with a lower one, by halves.
  local low, high = above, redis.call('ZCOUNT', KEYS[1], string.format('%.0f', score), '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle, 'REV')[1]
    if is_ahead(found, entry) then low = middle + 1 else high = middle end
  end
  before = low
end
local first = math.max(before - radius, 0)
local entries = redis.call('ZRANGE', KEYS[1], first, before + radius, 'REV', 'WITHSCORES')
return {'OK', 'entry', entry, 'score', score, 'above', above, 'before', before, 'first', first,
  'entries', entries}
end
redis.register_function{function_name = 'russet_v1_ranking_near', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 5 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Closes a leaderboard whose period is over: nothing changes it from then on.
-- KEYS: 1 the board; 2 mark of a closed board
-- ARGV: 1 end_ms of the period, 0 for none; 2 ttl_ms
-- Replies: CLOSED size, closed_at_ms (the first time); OPEN retry_after_ms
-- Errors: INVALID end_ms, ttl_ms
local end_ms, ttl_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e13)
if not end_ms then return refuse('end_ms') end
if not ttl_ms then return refuse('ttl_ms') end
local now = now_ms()
if now < end_ms then return {'OPEN', 'retry_after_ms', end_ms - now} end
-- Keys that are not what they should be fail here, before anything is written.
local size = redis.call('ZCARD', KEYS[1])
local closed_at_ms = tonumber(redis.call('GET', KEYS[2]))
if not closed_at_ms then
  redis.call('SET', KEYS[2], now, 'PX', ttl_ms)
  closed_at_ms = now
end
return {'CLOSED', 'size', size, 'closed_at_ms', closed_at_ms}
end
redis.register_function{function_name = 'russet_v1_ranking_finish', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end


-- What a database has to know, in the order in which it happened.

-- Gives an item back, and lets its user buy again.

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.

-- Reservations whose time is over; gives how many there were, and whether anything was written.

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function step(KEYS, ARGV)
-- Opens a sale, if it was not opened before. If the store has lost it but not its orders, what they
-- have is not sold again.
-- KEYS: 1 sale; 2 orders; 3 holds
-- ARGV: 1 stock; 2 opens_ms (0: now); 3 closes_ms (0: after open_for_ms); 4 open_for_ms;
--   5 hold_ms (0: an order is final); 6 keep_ms; 7 outbox_max
-- Replies: OPENED; EXISTS
-- Errors: INVALID stock, opens_ms, closes_ms, open_for_ms, hold_ms, keep_ms, outbox_max
local sale, stock, opens_ms = KEYS[1], whole(ARGV[1], 1, 1e9), whole(ARGV[2], 0, 1e14)
local closes_ms, open_for_ms = whole(ARGV[3], 0, 1e14), whole(ARGV[4], 0, 1e12)
local hold_ms, keep_ms = whole(ARGV[5], 0, 1e12), whole(ARGV[6], 1, 1e12)
local outbox_max = whole(ARGV[7], 1, 1e9)
if not stock then return refuse('stock') end
if not opens_ms then return refuse('opens_ms') end
if not closes_ms then return refuse('closes_ms') end
if not open_for_ms then return refuse('open_for_ms') end
if not hold_ms then return refuse('hold_ms') end
if not keep_ms then return refuse('keep_ms') end
if not outbox_max then return refuse('outbox_max') end
local now = now_ms()
if opens_ms == 0 then opens_ms = now end
if closes_ms == 0 then closes_ms = opens_ms + open_for_ms end
if closes_ms <= now or closes_ms <= opens_ms then return refuse('closes_ms') end

if redis.call('EXISTS', sale) == 1 then
  return {'EXISTS'}
end
local sold, held = redis.call('HLEN', KEYS[2]), redis.call('ZCARD', KEYS[3])
if held < sold and hold_ms > 0 then
  -- The reservations were lost too: the orders say which they are.
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 1000)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local order = read_order(KEYS[2], page[2][i])
      if order and order.state == 'held' then
        redis.call('ZADD', KEYS[3], 'NX', order.expires_ms, page[2][i])
      end
    end
  until cursor == '0'
  held = redis.call('ZCARD', KEYS[3])
end
redis.call('HSET', sale, 'stock', math.max(stock - sold, 0), 'total', stock, 'opens_ms', opens_ms,
  'closes_ms', closes_ms, 'hold_ms', hold_ms, 'keep_ms', keep_ms, 'outbox_max', outbox_max)
if sold > 0 then
  redis.call('HSET', sale, 'held', math.min(held, sold), 'paid', sold - math.min(held, sold))
end
local at = closes_ms + hold_ms + keep_ms
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'OPENED'}
end
redis.register_function{function_name = 'russet_v1_sale_open', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 7 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Closes a sale before its time. Reservations can still be paid or cancelled.
-- KEYS: 1 sale
-- Replies: CLOSED; MISSING
local closes_ms = redis.call('HGET', KEYS[1], 'closes_ms')
if not closes_ms then
  return {'MISSING'}
end
redis.call('HSET', KEYS[1], 'closes_ms', math.min(tonumber(closes_ms), now_ms()))
return {'CLOSED'}
end
redis.register_function{function_name = 'russet_v1_sale_close', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end

local function write_order(orders, user, order)
  local packed = cmsgpack.pack({order.id, order.state, order.expires_ms, order.made_ms})
  redis.call('HSET', orders, user, packed)
end

-- What a database has to know, in the order in which it happened.
local function report(outbox, kind, user, order)
  redis.call('XADD', outbox, '*', 'kind', kind, 'order', order.id, 'user', user)
end

-- Gives an item back, and lets its user buy again.
local function give_back(sale, orders, holds, outbox, user, order, kind)
  redis.call('HDEL', orders, user)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'stock', 1)
  redis.call('HINCRBY', sale, order.state, -1)
  redis.call('HINCRBY', sale, kind, 1)
  report(outbox, kind, user, order)
end

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.
local function relist(sale, orders, holds)
  local unknown = tonumber(redis.call('HGET', sale, 'held') or 0) - redis.call('ZCARD', holds)
  if unknown <= 0 then
    return 0, false
  end
  if redis.call('EXISTS', orders) == 0 then
    redis.call('HINCRBY', sale, 'stock', unknown)
    redis.call('HINCRBY', sale, 'held', -unknown)
    redis.call('HINCRBY', sale, 'expired', unknown)
    return unknown, true
  end
  local page = redis.call('HSCAN', orders, redis.call('HGET', sale, 'relist') or '0', 'COUNT',
    RECLAIM_MAX)
  redis.call('HSET', sale, 'relist', page[1])
  for i = 1, #page[2], 2 do
    local order = read_order(orders, page[2][i])
    if order and order.state == 'held' then
      redis.call('ZADD', holds, 'NX', order.expires_ms, page[2][i])
    end
  end
  return 0, true
end

-- Reservations whose time is over; gives how many there were, and whether anything was written.
local function reclaim(sale, orders, holds, outbox, now, limit)
  local returned, is_changed = relist(sale, orders, holds)
  local users = redis.call('ZRANGE', holds, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, user in ipairs(users) do
    -- If the orders were lost, the item comes back all the same: nobody can pay for it any more.
    local order = read_order(orders, user) or {id = '', state = 'held'}
    give_back(sale, orders, holds, outbox, user, order, 'expired')
  end
  return returned + #users, is_changed or #users > 0
end

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function keep_until(sale, now)
  local set = redis.call('HMGET', sale, 'closes_ms', 'hold_ms', 'keep_ms')
  return set[1] and math.max(now, tonumber(set[1])) + set[2] + set[3]
end
local function step(KEYS, ARGV)
-- Takes one item for a user who has none, and reports the order.
-- KEYS: 1 request marker; 2 sale; 3 orders; 4 holds; 5 outbox
-- ARGV: 1 request_ttl_ms; 2 user; 3 order (the id that a new order gets)
-- Replies: ORDERED order, expires_in_ms (-1: it is final); ALREADY order, state, expires_in_ms;
--   SOLD_OUT held (reservations that may still come back); CLOSED opens_in_ms (-1: it is over);
--   BUSY (the database has too many orders to take in); MISSING
-- Errors: INVALID user, order; CORRUPT order
local sale, orders, holds, outbox = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local user, id = ARGV[2], ARGV[3]
if user == '' then return refuse('user') end
if id == '' then return refuse('order') end

local set = redis.call('HMGET', sale, 'stock', 'opens_ms', 'closes_ms', 'hold_ms', 'outbox_max')
local stock, opens_ms, closes_ms = tonumber(set[1]), tonumber(set[2]), tonumber(set[3])
local hold_ms, outbox_max = tonumber(set[4]), tonumber(set[5])
if not stock or not opens_ms then
  return {'MISSING'}, true
end
local now = now_ms()
local order, is_corrupt = read_order(orders, user)
if is_corrupt then return redis.error_reply('CORRUPT order') end
if order and (order.state == 'paid' or order.expires_ms > now) then
  local left_ms = order.state == 'paid' and -1 or order.expires_ms - now
  return {'ALREADY', 'order', order.id, 'state', order.state, 'expires_in_ms', left_ms}, true
end
if now < opens_ms then
  return {'CLOSED', 'opens_in_ms', opens_ms - now}, true
end
if now >= closes_ms then
  return {'CLOSED', 'opens_in_ms', -1}, true
end
if redis.call('XLEN', outbox) >= outbox_max then
  return {'BUSY'}, true
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', holds)
local is_reclaimed = false
if order then
  -- The reservation of this user is over.
  give_back(sale, orders, holds, outbox, user, order, 'expired')
  stock, is_reclaimed = stock + 1, true
end
if stock <= 0 then
  stock, is_reclaimed = reclaim(sale, orders, holds, outbox, now, RECLAIM_MAX)
end
local reply, is_unchanged
if stock <= 0 then
  reply = {'SOLD_OUT', 'held', redis.call('ZCARD', holds)}
  is_unchanged = true
else
  order = {id = id, state = 'paid', expires_ms = 0, made_ms = now}
  if hold_ms > 0 then
    order.state, order.expires_ms = 'held', now + hold_ms
    redis.call('ZADD', holds, order.expires_ms, user)
  end
  write_order(orders, user, order)
  redis.call('HINCRBY', sale, 'stock', -1)
  redis.call('HINCRBY', sale, order.state, 1)
  report(outbox, 'ordered', user, order)
  reply = {'ORDERED', 'order', id, 'expires_in_ms', hold_ms > 0 and hold_ms or -1}
end
if not is_unchanged or is_reclaimed then
  local at = keep_until(sale, now)
  for i = 2, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return reply, is_unchanged
end
redis.register_function{function_name = 'russet_v1_sale_buy', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 5 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end

local function write_order(orders, user, order)
  local packed = cmsgpack.pack({order.id, order.state, order.expires_ms, order.made_ms})
  redis.call('HSET', orders, user, packed)
end

-- What a database has to know, in the order in which it happened.
local function report(outbox, kind, user, order)
  redis.call('XADD', outbox, '*', 'kind', kind, 'order', order.id, 'user', user)
end

-- Gives an item back, and lets its user buy again.
local function give_back(sale, orders, holds, outbox, user, order, kind)
  redis.call('HDEL', orders, user)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'stock', 1)
  redis.call('HINCRBY', sale, order.state, -1)
  redis.call('HINCRBY', sale, kind, 1)
  report(outbox, kind, user, order)
end

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.

-- Reservations whose time is over; gives how many there were, and whether anything was written.

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function keep_until(sale, now)
  local set = redis.call('HMGET', sale, 'closes_ms', 'hold_ms', 'keep_ms')
  return set[1] and math.max(now, tonumber(set[1])) + set[2] + set[3]
end
local function step(KEYS, ARGV)
-- Makes a reservation final.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 user; 2 order
-- Replies: PAID; EXPIRED (the item went back, or the order was cancelled); LOST (the store has lost
--   the sale: nothing was changed)
-- Errors: CORRUPT order
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local user = ARGV[1]
local order, is_corrupt = read_order(orders, user)
if is_corrupt then return redis.error_reply('CORRUPT order') end
if not order or order.id ~= ARGV[2] then
  return {'EXPIRED'}
end
if order.state == 'paid' then
  return {'PAID'}
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', holds)
redis.call('XLEN', outbox)
local now, reply = now_ms(), nil
local at = keep_until(sale, now)
if not at then
  return {'LOST'}
end
if order.expires_ms <= now then
  give_back(sale, orders, holds, outbox, user, order, 'expired')
  reply = {'EXPIRED'}
else
  order.state, order.expires_ms = 'paid', 0
  write_order(orders, user, order)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'held', -1)
  redis.call('HINCRBY', sale, 'paid', 1)
  report(outbox, 'paid', user, order)
  reply = {'PAID'}
end
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
end
redis.register_function{function_name = 'russet_v1_sale_pay', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end


-- What a database has to know, in the order in which it happened.
local function report(outbox, kind, user, order)
  redis.call('XADD', outbox, '*', 'kind', kind, 'order', order.id, 'user', user)
end

-- Gives an item back, and lets its user buy again.
local function give_back(sale, orders, holds, outbox, user, order, kind)
  redis.call('HDEL', orders, user)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'stock', 1)
  redis.call('HINCRBY', sale, order.state, -1)
  redis.call('HINCRBY', sale, kind, 1)
  report(outbox, kind, user, order)
end

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.

-- Reservations whose time is over; gives how many there were, and whether anything was written.

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function keep_until(sale, now)
  local set = redis.call('HMGET', sale, 'closes_ms', 'hold_ms', 'keep_ms')
  return set[1] and math.max(now, tonumber(set[1])) + set[2] + set[3]
end
local function step(KEYS, ARGV)
-- Gives an order back, reserved or paid: its item is on sale again, and its user may buy again.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 user; 2 order
-- Replies: CANCELLED; GONE (it is cancelled already, or its reservation is over); LOST (the store has
--   lost the sale: nothing was changed)
-- Errors: CORRUPT order
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, is_corrupt = read_order(orders, ARGV[1])
if is_corrupt then return redis.error_reply('CORRUPT order') end
if not order or order.id ~= ARGV[2] then
  return {'GONE'}
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', holds)
redis.call('XLEN', outbox)
local now = now_ms()
local at = keep_until(sale, now)
if not at then
  return {'LOST'}
end
-- A reservation that is over comes back as what it is, and is not cancelled.
local is_over = order.state == 'held' and order.expires_ms <= now
give_back(sale, orders, holds, outbox, ARGV[1], order, is_over and 'expired' or 'cancelled')
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {is_over and 'GONE' or 'CANCELLED'}
end
redis.register_function{function_name = 'russet_v1_sale_cancel', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end


-- What a database has to know, in the order in which it happened.
local function report(outbox, kind, user, order)
  redis.call('XADD', outbox, '*', 'kind', kind, 'order', order.id, 'user', user)
end

-- Gives an item back, and lets its user buy again.
local function give_back(sale, orders, holds, outbox, user, order, kind)
  redis.call('HDEL', orders, user)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'stock', 1)
  redis.call('HINCRBY', sale, order.state, -1)
  redis.call('HINCRBY', sale, kind, 1)
  report(outbox, kind, user, order)
end

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.
local function relist(sale, orders, holds)
  local unknown = tonumber(redis.call('HGET', sale, 'held') or 0) - redis.call('ZCARD', holds)
  if unknown <= 0 then
    return 0, false
  end
  if redis.call('EXISTS', orders) == 0 then
    redis.call('HINCRBY', sale, 'stock', unknown)
    redis.call('HINCRBY', sale, 'held', -unknown)
    redis.call('HINCRBY', sale, 'expired', unknown)
    return unknown, true
  end
  local page = redis.call('HSCAN', orders, redis.call('HGET', sale, 'relist') or '0', 'COUNT',
    RECLAIM_MAX)
  redis.call('HSET', sale, 'relist', page[1])
  for i = 1, #page[2], 2 do
    local order = read_order(orders, page[2][i])
    if order and order.state == 'held' then
      redis.call('ZADD', holds, 'NX', order.expires_ms, page[2][i])
    end
  end
  return 0, true
end

-- Reservations whose time is over; gives how many there were, and whether anything was written.
local function reclaim(sale, orders, holds, outbox, now, limit)
  local returned, is_changed = relist(sale, orders, holds)
  local users = redis.call('ZRANGE', holds, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, user in ipairs(users) do
    -- If the orders were lost, the item comes back all the same: nobody can pay for it any more.
    local order = read_order(orders, user) or {id = '', state = 'held'}
    give_back(sale, orders, holds, outbox, user, order, 'expired')
  end
  return returned + #users, is_changed or #users > 0
end

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function keep_until(sale, now)
  local set = redis.call('HMGET', sale, 'closes_ms', 'hold_ms', 'keep_ms')
  return set[1] and math.max(now, tonumber(set[1])) + set[2] + set[3]
end
local function step(KEYS, ARGV)
-- Puts the items of reservations whose time is over on sale again.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 limit (1 to 100)
-- Replies: OK reclaimed
-- Errors: INVALID limit
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit = whole(ARGV[1], 1, RECLAIM_MAX)
if not limit then return refuse('limit') end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', orders)
redis.call('XLEN', outbox)
local now = now_ms()
local at = keep_until(sale, now)
if not at then
  return {'OK', 'reclaimed', 0}
end
local count, is_changed = reclaim(sale, orders, holds, outbox, now, limit)
if is_changed then
  for i = 1, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return {'OK', 'reclaimed', count}
end
redis.register_function{function_name = 'russet_v1_sale_reclaim', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end


-- What a database has to know, in the order in which it happened.

-- Gives an item back, and lets its user buy again.

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.

-- Reservations whose time is over; gives how many there were, and whether anything was written.

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function step(KEYS, ARGV)
-- Reads the order of a user.
-- KEYS: 1 orders
-- ARGV: 1 user
-- Replies: FOUND order, state (held or paid), expires_in_ms (-1: it is final); MISSING
-- Errors: CORRUPT order
local order, is_corrupt = read_order(KEYS[1], ARGV[1])
if is_corrupt then return redis.error_reply('CORRUPT order') end
local now = now_ms()
if not order or order.state == 'held' and order.expires_ms <= now then
  return {'MISSING'}
end
local left_ms = order.state == 'paid' and -1 or order.expires_ms - now
return {'FOUND', 'order', order.id, 'state', order.state, 'expires_in_ms', left_ms}
end
redis.register_function{function_name = 'russet_v1_sale_order', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts how a sale stands, in constant time.
-- KEYS: 1 sale; 2 outbox
-- Replies: OK total, stock, held, paid, cancelled, expired, backlog; MISSING
local set = redis.call('HMGET', KEYS[1], 'total', 'stock', 'held', 'paid', 'cancelled', 'expired')
if not set[1] then
  return {'MISSING'}
end
for i = 1, 6 do
  set[i] = tonumber(set[i] or 0)
end
return {
  'OK',
  'total', set[1], 'stock', set[2], 'held', set[3], 'paid', set[4],
  'cancelled', set[5], 'expired', set[6],
  'backlog', redis.call('XLEN', KEYS[2]),
}
end
redis.register_function{function_name = 'russet_v1_sale_stats', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads what has happened after a position, the oldest first.
-- KEYS: 1 outbox
-- ARGV: 1 after (a position, or - for the first); 2 limit (1 to 1000)
-- Replies: OK events (a list of position, kind (ordered, paid, cancelled or expired), order, user)
-- Errors: INVALID after, limit
local after, limit = ARGV[1], whole(ARGV[2], 1, 1000)
if after ~= '-' and not string.find(after, '^%d+%-%d+$') then return refuse('after') end
if not limit then return refuse('limit') end
local from = after == '-' and '-' or '(' .. after
local events = {}
for i, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', limit)) do
  local fields = entry[2]
  events[i] = {entry[1], fields[2], fields[4], fields[6]}
end
return {'OK', 'events', events}
end
redis.register_function{function_name = 'russet_v1_sale_outbox', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Forgets what has happened up to a position, which the database has.
-- KEYS: 1 outbox
-- ARGV: 1 position
-- Replies: OK forgotten; AHEAD last (the position is of a later event than the last there was: of
--   another outbox, or the store has lost some. Nothing was forgotten)
-- Errors: INVALID position
local ms, sequence = string.match(ARGV[1], '^(%d+)%-(%d+)$')
if not whole(ms, 0, 1e15) or not whole(sequence, 0, 1e15) then return refuse('position') end
local info = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'STREAM', KEYS[1]) or {}
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then
    local last_ms, last_sequence = string.match(info[i + 1], '^(%d+)%-(%d+)$')
    local past_ms = tonumber(ms) - tonumber(last_ms)
    if past_ms > 0 or past_ms == 0 and tonumber(sequence) > tonumber(last_sequence) then
      return {'AHEAD', 'last', info[i + 1]}
    end
  end
end
local next_id = ms .. '-' .. string.format('%.0f', tonumber(sequence) + 1)
return {'OK', 'forgotten', redis.call('XTRIM', KEYS[1], 'MINID', next_id)}
end
redis.register_function{function_name = 'russet_v1_sale_confirm', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Makes a session of a user, who has at most so many. The same id makes it once: it may run twice.
-- KEYS: 1 the session; 2 the sessions of the user; 3 the session to evict, or the first key again; 4 what became of the
--   id
-- ARGV: 1 member; 2 user_id; 3 tenant_id; 4 status; 5 auth_level; 6 idle_ms; 7 absolute_ms; 8 session_count_max; 9 reject or evict; 10 member to evict, or empty; 11 ip_digest; 12 user_agent_digest
-- Replies: CREATED ttl_ms; FULL; EVICT member
-- Errors: INVALID member, user_id, status, idle_ms, absolute_ms, session_count_max, when_full
local idle, absolute = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 1, 1e13)
local count_max = whole(ARGV[8], 1, 256)
if ARGV[1] == '' then return refuse('member') end
if ARGV[2] == '' then return refuse('user_id') end
if ARGV[4] ~= 'ACTIVE' and ARGV[4] ~= 'MFA_REQUIRED' then return refuse('status') end
if not idle then return refuse('idle_ms') end
if not absolute then return refuse('absolute_ms') end
if not count_max then return refuse('session_count_max') end
if ARGV[9] ~= 'reject' and ARGV[9] ~= 'evict' then return refuse('when_full') end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'CREATED', 'ttl_ms', math.max(redis.call('PTTL', KEYS[1]), 0)}
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  -- A request that was late: the session has another id by now.
  return {'CREATED', 'ttl_ms', 0}
end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= count_max then
  if ARGV[9] == 'reject' then
    return {'FULL'}
  end
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if first == ARGV[10] then
    redis.call('DEL', KEYS[3])
    redis.call('ZREM', KEYS[2], first)
    first = redis.call('ZCARD', KEYS[2]) >= count_max and redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  end
  if first then
    return {'EVICT', 'member', first}
  end
end
local ttl = math.min(idle, absolute)
redis.call('HSET', KEYS[1], 'schema_version', 1, 'user_id', ARGV[2], 'tenant_id', ARGV[3],
  'status', ARGV[4], 'auth_level', ARGV[5], 'created_at_ms', now, 'updated_at_ms', now,
  'last_seen_at_ms', now, 'absolute_at_ms', now + absolute, 'failed_mfa_attempt_count', 0)
if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'ip_digest', ARGV[11]) end
if ARGV[12] ~= '' then redis.call('HSET', KEYS[1], 'user_agent_digest', ARGV[12]) end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
if redis.call('PTTL', KEYS[2]) < ttl then
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {'CREATED', 'ttl_ms', ttl}
end
redis.register_function{function_name = 'russet_v1_session_create', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 12 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads the four fields that decide on a request, and no more.
-- KEYS: 1 the session
-- ARGV: none
-- Replies: FOUND user_id, tenant_id, status, auth_level; MISSING; CORRUPT field
local state = redis.pcall('HMGET', KEYS[1], 'user_id', 'tenant_id', 'status', 'auth_level')
if state.err then
  return {'CORRUPT', 'field', 'type'}
elseif not state[1] and not state[3] and redis.call('EXISTS', KEYS[1]) == 0 then
  return {'MISSING'}
end
return {'FOUND', 'user_id', state[1], 'tenant_id', state[2], 'status', state[3],
  'auth_level', state[4]}
end
redis.register_function{function_name = 'russet_v1_session_authorize', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads what decides on a request and keeps the session alive: its TTL is renewed when little of it is left, never past its absolute deadline.
-- KEYS: 1 the session; 2 the sessions of the user
-- ARGV: 1 member; 2 idle_ms; 3 refresh_below_percent; 4 1 to record the time in any case
-- Replies: FOUND user_id, tenant_id, status, auth_level, is_refreshed; MISSING; CORRUPT field
-- Errors: INVALID idle_ms, refresh_below_percent
local idle, percent = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 100)
if not idle then return refuse('idle_ms') end
if not percent then return refuse('refresh_below_percent') end
local state = redis.pcall('HMGET', KEYS[1], 'user_id', 'tenant_id', 'status', 'auth_level',
  'absolute_at_ms')
if state.err then
  return {'CORRUPT', 'field', 'type'}
end
local left, absolute_at = redis.call('PTTL', KEYS[1]), tonumber(state[5])
if left == -2 then
  return {'MISSING'}
elseif not absolute_at then
  return {'CORRUPT', 'field', 'absolute_at_ms'}
end
local is_refreshed = 0
if state[3] ~= 'REVOKED' then
  local now = now_ms()
  local ttl = math.min(idle, absolute_at - now)
  if ttl <= 0 then
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    return {'MISSING'}
  end
  -- Without a TTL, which no step leaves behind, it gets one.
  if left == -1 or (left * 100 < idle * percent and ttl > left) then
    redis.call('PEXPIRE', KEYS[1], ttl)
    left, is_refreshed = ttl, 1
  end
  -- Also if the list of the user's sessions was lost: what it does not have can't be revoked by it.
  if is_refreshed == 1 or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
    redis.call('ZADD', KEYS[2], now + left, ARGV[1])
    if redis.call('PTTL', KEYS[2]) < left then
      redis.call('PEXPIRE', KEYS[2], left)
    end
  end
  if is_refreshed == 1 or ARGV[4] == '1' then
    redis.call('HSET', KEYS[1], 'last_seen_at_ms', now, 'updated_at_ms', now)
  end
end
return {'FOUND', 'user_id', state[1], 'tenant_id', state[2], 'status', state[3],
  'auth_level', state[4], 'is_refreshed', is_refreshed}
end
redis.register_function{function_name = 'russet_v1_session_touch', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads a whole session: the values of the fields asked for, absent ones as nil.
-- KEYS: 1 the session
-- ARGV: the names of its fields
-- Replies: FOUND values, ttl_ms, is_challenge_live; MISSING; CORRUPT field
-- Errors: INVALID fields
if #ARGV == 0 or #ARGV > 40 then return refuse('fields') end
local values = redis.pcall('HMGET', KEYS[1], unpack(ARGV))
if values.err then
  return {'CORRUPT', 'field', 'type'}
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return {'MISSING'}
end
local challenge = redis.call('HMGET', KEYS[1], 'mfa_challenge', 'mfa_challenge_until_ms')
local is_live = challenge[1] and (tonumber(challenge[2] or 0) or 0) > now_ms()
return {'FOUND', 'values', values, 'ttl_ms', math.max(left, 0), 'is_challenge_live', is_live and 1 or 0}
end
redis.register_function{function_name = 'russet_v1_session_find', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The sessions of a user that have not expired.
-- KEYS: 1 the sessions of the user
-- ARGV: none
-- Replies: OK members
return {'OK', 'members', redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now_ms(), '+inf', 'LIMIT', 0, 256)}
end
redis.register_function{function_name = 'russet_v1_session_list', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Asks for a second factor: the session is not authorized until the challenge is met.
-- KEYS: 1 the session
-- ARGV: 1 digest of the challenge; 2 challenge_ttl_ms; 3 attempt_count_max
-- Replies: CHALLENGED; LOCKED; REVOKED; MISSING
-- Errors: INVALID challenge, challenge_ttl_ms, attempt_count_max
local ttl, attempts_max = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e6)
if ARGV[1] == '' then return refuse('challenge') end
if not ttl then return refuse('challenge_ttl_ms') end
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[1], 'status', 'failed_mfa_attempt_count')
if not state[1] then
  return {'MISSING'}
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}
elseif (tonumber(state[2] or 0) or 0) >= attempts_max then
  return {'LOCKED'}
end
local now = now_ms()
redis.call('HSET', KEYS[1], 'status', 'MFA_REQUIRED', 'auth_level', 'BASIC', 'mfa_challenge', ARGV[1],
  'mfa_challenge_until_ms', now + ttl, 'updated_at_ms', now)
redis.call('HDEL', KEYS[1], 'mfa_verified_at_ms', 'mfa_verified_challenge')
-- Where the server has TTLs of fields the challenge goes by itself; elsewhere its end is checked.
redis.pcall('HPEXPIRE', KEYS[1], ttl, 'FIELDS', 1, 'mfa_challenge')
return {'CHALLENGED'}
end
redis.register_function{function_name = 'russet_v1_session_mfa_begin', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Meets the challenge of a session, or counts one more failure.
-- KEYS: 1 marker of the request; 2 the session
-- ARGV: 1 request_ttl_ms; 2 digest of the challenge; 3 attempt_count_max
-- Replies: VERIFIED; MISMATCH attempts_left; EXPIRED; LOCKED; NOT_REQUIRED; REVOKED; MISSING
-- Errors: INVALID challenge, attempt_count_max
local attempts_max = whole(ARGV[3], 1, 1e6)
if ARGV[2] == '' then return refuse('challenge') end
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[2], 'status', 'failed_mfa_attempt_count', 'mfa_challenge',
  'mfa_challenge_until_ms', 'mfa_verified_challenge')
if not state[1] then
  return {'MISSING'}, true
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}, true
elseif state[1] == 'MFA_VERIFIED' and state[5] == ARGV[2] then
  return {'VERIFIED'}, true
elseif state[1] ~= 'MFA_REQUIRED' then
  return {'NOT_REQUIRED'}, true
end
local attempts, now = tonumber(state[2] or 0) or 0, now_ms()
if attempts >= attempts_max then
  return {'LOCKED'}, true
elseif not state[3] or (tonumber(state[4] or 0) or 0) <= now then
  return {'EXPIRED'}, true
elseif state[3] ~= ARGV[2] then
  attempts = redis.call('HINCRBY', KEYS[2], 'failed_mfa_attempt_count', 1)
  if attempts < attempts_max then
    return {'MISMATCH', 'attempts_left', attempts_max - attempts}
  end
  redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
  return {'LOCKED'}
end
redis.call('HSET', KEYS[2], 'status', 'MFA_VERIFIED', 'auth_level', 'MFA', 'mfa_verified_at_ms', now,
  'mfa_verified_challenge', ARGV[2], 'failed_mfa_attempt_count', 0, 'updated_at_ms', now)
redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
return {'VERIFIED'}
end
redis.register_function{function_name = 'russet_v1_session_mfa_verify', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Counts a failed attempt at the second factor that was checked elsewhere.
-- KEYS: 1 marker of the request; 2 the session
-- ARGV: 1 request_ttl_ms; 2 attempt_count_max
-- Replies: MISMATCH attempts_left; LOCKED; REVOKED; MISSING
-- Errors: INVALID attempt_count_max
local attempts_max = whole(ARGV[2], 1, 1e6)
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[2], 'status', 'failed_mfa_attempt_count')
if not state[1] then
  return {'MISSING'}, true
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}, true
elseif (tonumber(state[2] or 0) or 0) >= attempts_max then
  return {'LOCKED'}, true
end
local attempts = redis.call('HINCRBY', KEYS[2], 'failed_mfa_attempt_count', 1)
redis.call('HSET', KEYS[2], 'updated_at_ms', now_ms())
if attempts < attempts_max then
  return {'MISMATCH', 'attempts_left', attempts_max - attempts}
end
redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
return {'LOCKED'}
end
redis.register_function{function_name = 'russet_v1_session_mfa_fail', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Ends sessions of a user. Given all of them, it says so if there are others meanwhile and ends none.
-- KEYS: 1 the sessions of the user; from 2 on the sessions to end
-- ARGV: 1 reason; 2 keep_ms; 3 member that stays or empty, or - to end only those given; from 4 on the members of the keys from 2 on
-- Replies: REVOKED revoked_count; CHANGED
-- Errors: INVALID keep_ms, members
local keep = whole(ARGV[2], 1, 1e13)
if not keep then return refuse('keep_ms') end
if #ARGV - 3 ~= #KEYS - 1 or #KEYS > 257 then return refuse('members') end
local now = now_ms()
if ARGV[3] ~= '-' then
  local is_given = {}
  for index = 4, #ARGV do
    is_given[ARGV[index]] = true
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, 256)) do
    if member ~= ARGV[3] and not is_given[member] then
      return {'CHANGED'}
    end
  end
end
local revoked = 0
for index = 2, #KEYS do
  local status = redis.pcall('HGET', KEYS[index], 'status')
  if type(status) == 'table' then
    -- It is no session, lets nobody in, and must not keep the others from ending.
    redis.call('DEL', KEYS[index])
  elseif status and status ~= 'REVOKED' then
    redis.call('HSET', KEYS[index], 'status', 'REVOKED', 'revoked_at_ms', now,
      'revoked_reason', ARGV[1], 'updated_at_ms', now)
    redis.call('HDEL', KEYS[index], 'mfa_challenge', 'mfa_challenge_until_ms')
    local left = redis.call('PTTL', KEYS[index])
    if left < 0 or left > keep then
      redis.call('PEXPIRE', KEYS[index], keep)
    end
    revoked = revoked + 1
  end
  redis.call('ZREM', KEYS[1], ARGV[index + 2])
end
return {'REVOKED', 'revoked_count', revoked}
end
redis.register_function{function_name = 'russet_v1_session_revoke', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Gives a session a new id; the old one is worth nothing from then on, but for ending it. May run
-- twice.
-- KEYS: 1 the session; 2 the session under its new id; 3 the sessions of the user; 4 what became of
-- the old id
-- ARGV: 1 member; 2 new member
-- Replies: ROTATED; REVOKED; MISSING
-- Errors: INVALID member
if ARGV[1] == '' or ARGV[2] == '' or ARGV[1] == ARGV[2] then return refuse('member') end
if redis.call('HGET', KEYS[2], 'rotated_from') == ARGV[1] then
  return {'ROTATED'}
end
local state = redis.call('HMGET', KEYS[1], 'status', 'absolute_at_ms')
local status = state[1]
if not status then
  return {'MISSING'}
elseif status == 'REVOKED' then
  return {'REVOKED'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[3])
local now, left = now_ms(), redis.call('PTTL', KEYS[1])
redis.call('RENAME', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[2], 'last_rotated_at_ms', now, 'rotated_from', ARGV[1], 'updated_at_ms', now)
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[3], now + left, ARGV[2])
if redis.call('PTTL', KEYS[3]) < left then
  redis.call('PEXPIRE', KEYS[3], left)
end
-- For as long as the session can live.
local known = math.max((tonumber(state[2] or 0) or 0) - now, left, 1)
redis.call('SET', KEYS[4], ARGV[2], 'PX', known)
return {'ROTATED'}
end
redis.register_function{function_name = 'russet_v1_session_rotate', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The member that an old one was rotated to.
-- KEYS: 1 what became of the old id
-- ARGV: none
-- Replies: FOUND member; MISSING
local member = redis.call('GET', KEYS[1])
if not member then
  return {'MISSING'}
end
return {'FOUND', 'member', member}
end
redis.register_function{function_name = 'russet_v1_session_successor', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Sets or clears a user's like.
-- KEYS: 1 when each user liked it
-- ARGV: 1 user; 2 SET or CLEAR; 3 likers_max; 4 ttl_ms after the last like
-- Replies: CHANGED likes; UNCHANGED likes; FULL likes
-- Errors: INVALID how, likers_max, ttl_ms
local likers_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not likers_max then return refuse('likers_max') end
if not ttl_ms then return refuse('ttl_ms') end
local likes = redis.call('ZCARD', KEYS[1])
if ARGV[2] == 'CLEAR' then
  local removed = redis.call('ZREM', KEYS[1], ARGV[1])
  return {removed == 1 and 'CHANGED' or 'UNCHANGED', 'likes', likes - removed}
end
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {'UNCHANGED', 'likes', likes} end
if likes >= likers_max then return {'FULL', 'likes', likes} end
redis.call('ZADD', KEYS[1], now_ms(), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'CHANGED', 'likes', likes + 1}
end
redis.register_function{function_name = 'russet_v1_like', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- How many like it, who was first or last, and whether some users do.
-- KEYS: 1 when each user liked it
-- ARGV: 1 count of likers, which may be 0; 2 FIRST or LAST; 3... users to look for
-- Replies: OK likes, likers (user, liked_at_ms, ...), liked (1 or 0 for each user)
-- Errors: INVALID count, order, users
local count = whole(ARGV[1], 0, 1000)
if not count then return refuse('count') end
if ARGV[2] ~= 'FIRST' and ARGV[2] ~= 'LAST' then return refuse('order') end
if #ARGV > 1002 then return refuse('users') end
local likers, liked = {}, {}
if count > 0 then
  if ARGV[2] == 'FIRST' then
    likers = redis.call('ZRANGE', KEYS[1], 0, count - 1, 'WITHSCORES')
  else
    likers = redis.call('ZRANGE', KEYS[1], 0, count - 1, 'REV', 'WITHSCORES')
  end
end
for i = 3, #ARGV do
  liked[i - 2] = redis.call('ZSCORE', KEYS[1], ARGV[i]) and 1 or 0
end
return {'OK', 'likes', redis.call('ZCARD', KEYS[1]), 'likers', likers, 'liked', liked}
end
redis.register_function{function_name = 'russet_v1_likes_read', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Sets or clears that a user follows another, on the side of the user: this is what holds. The
-- other side is told by follow_apply; until it has confirmed, the change is pending. At most 10000 are.
-- KEYS: 1 whom the user follows; 2 pending changes; 3 number of the last change
-- ARGV: 1 the other; 2 SET or CLEAR; 3 following_max; 4 ttl_ms after the last change
-- Replies: CHANGED version, following; UNCHANGED version, following; FULL following
-- Errors: INVALID how, following_max, ttl_ms
local following_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not following_max then return refuse('following_max') end
if not ttl_ms then return refuse('ttl_ms') end
local is_set = ARGV[2] == 'SET'
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[2])
local since = redis.call('ZSCORE', KEYS[1], ARGV[1])
local following = redis.call('ZCARD', KEYS[1])
-- Moments, but never the same twice and never back.
local last = tonumber(redis.call('GET', KEYS[3]) or 0)
local version = math.max(now_ms(), last + 1)
if is_set == (since and true or false) then
  -- Perhaps the other side has not heard of it yet, or only one of the two has been lost: the other
  -- side is told again.
  local pending = redis.call('ZSCORE', KEYS[2], ARGV[1])
  if is_set then
    redis.call('PEXPIRE', KEYS[1], ttl_ms)
  elseif not pending then
    redis.call('SET', KEYS[3], string.format('%.0f', version), 'PX', ttl_ms)
  end
  local told = tonumber(pending or since or version)
  return {'UNCHANGED', 'version', told, 'following', following}
end
if is_set and following >= following_max then return {'FULL', 'following', following} end
redis.call('SET', KEYS[3], string.format('%.0f', version), 'PX', ttl_ms)
redis.call('ZADD', KEYS[2], version, ARGV[1])
-- If the other sides are never told, the oldest changes are forgotten.
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -10001)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
if is_set then
  redis.call('ZADD', KEYS[1], version, ARGV[1])
  following = following + 1
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  following = following - 1
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'CHANGED', 'version', version, 'following', following}
end
redis.register_function{function_name = 'russet_v1_follow_change', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Tells the side of the one who is followed. Changes may come late, twice or in the wrong order:
-- the one with the highest version holds.
-- KEYS: 1 followers; 2 those who have gone lately, with the version
-- ARGV: 1 follower; 2 SET or CLEAR; 3 version; 4 followers_max; 5 ttl_ms; 6 gone_ttl_ms, how long a
-- late change is known to be late, of the last 10000
-- Replies: APPLIED followers; LATE followers; FULL followers
-- Errors: INVALID how, version, followers_max, ttl_ms, gone_ttl_ms
local version, followers_max = whole(ARGV[3], 1, 1e15), whole(ARGV[4], 1, 1e9)
local ttl_ms, gone_ttl_ms = whole(ARGV[5], 1, 1e13), whole(ARGV[6], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not version then return refuse('version') end
if not followers_max then return refuse('followers_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not gone_ttl_ms then return refuse('gone_ttl_ms') end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - gone_ttl_ms)
local present = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
local gone = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local followers = redis.call('ZCARD', KEYS[1])
if math.max(present, gone) >= version then return {'LATE', 'followers', followers} end
if ARGV[2] == 'SET' then
  if present == 0 and followers >= followers_max then
    return {'FULL', 'followers', followers}
  end
  redis.call('ZADD', KEYS[1], version, ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('ZADD', KEYS[2], version, ARGV[1])
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -10001)
  redis.call('PEXPIRE', KEYS[2], gone_ttl_ms)
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'APPLIED', 'followers', redis.call('ZCARD', KEYS[1])}
end
redis.register_function{function_name = 'russet_v1_follow_apply', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 6 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Forgets that a change is pending, unless a later one is.
-- KEYS: 1 pending changes
-- ARGV: 1 the other; 2 version
-- Replies: OK
-- Errors: INVALID version
local confirmed = whole(ARGV[2], 0, 1e15)
if not confirmed then return refuse('version') end
local version = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if version == confirmed then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {'OK'}
end
redis.register_function{function_name = 'russet_v1_follow_confirm', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- What holds between a user and others, and how many there are.
-- KEYS: 1 whom the user follows; 2 followers of the user; 3 pending changes
-- ARGV: 1... others
-- Replies: OK following, followers, follows (1 or 0 for each), followed_by (1 or 0 for each),
-- pending (other, SET or CLEAR, version, ...; at most 100)
-- Errors: INVALID others
if #ARGV > 1000 then return refuse('others') end
local follows, followed_by, pending = {}, {}, {}
for i = 1, #ARGV do
  follows[i] = redis.call('ZSCORE', KEYS[1], ARGV[i]) and 1 or 0
  followed_by[i] = redis.call('ZSCORE', KEYS[2], ARGV[i]) and 1 or 0
end
local changes = redis.call('ZRANGE', KEYS[3], 0, 99, 'WITHSCORES')
for i = 1, #changes, 2 do
  pending[#pending + 1] = changes[i]
  pending[#pending + 1] = redis.call('ZSCORE', KEYS[1], changes[i]) and 'SET' or 'CLEAR'
  pending[#pending + 1] = changes[i + 1]
end
return {'OK', 'following', redis.call('ZCARD', KEYS[1]), 'followers', redis.call('ZCARD', KEYS[2]),
  'follows', follows, 'followed_by', followed_by, 'pending', pending}
end
redis.register_function{function_name = 'russet_v1_follow_look', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- A page of users, the first to follow first. A user that stays is on one page, whoever comes or
-- goes meanwhile.
-- KEYS: 1 users with moments
-- ARGV: 1 count; 2 moment and 3 user of the last one of the page before, or empty
-- Replies: OK users (user, moment, ...)
-- Errors: INVALID count, cursor
local count, moment = whole(ARGV[1], 1, 1000), 0
if not count then return refuse('count') end
if ARGV[2] ~= '' then
  moment = whole(ARGV[2], 0, 1e15)
  if not moment then return refuse('cursor') end
end
local first = 0
if ARGV[2] ~= '' then
  -- By bytes, as the server sorts them: `<` may follow the server's locale.
  local function is_after(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = string.byte(a, i), string.byte(b, i)
      if x ~= y then return x > y end
    end
    return #a > #b
  end
  local text = string.format('%.0f', moment)
  local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. text)
  local high = redis.call('ZCOUNT', KEYS[1], '-inf', text)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle)[1]
    if is_after(found, ARGV[3]) then high = middle else low = middle + 1 end
  end
  first = low
end
return {'OK', 'users', redis.call('ZRANGE', KEYS[1], first, first + count - 1, 'WITHSCORES')}
end
redis.register_function{function_name = 'russet_v1_follow_page', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Users who follow a user and are followed by it.
-- KEYS: 1 whom the user follows; 2 followers of the user
-- ARGV: 1 count
-- Replies: OK users
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 1000)
if not count then return refuse('count') end
local small, large = KEYS[1], KEYS[2]
if redis.call('ZCARD', KEYS[2]) < redis.call('ZCARD', KEYS[1]) then
  small, large = KEYS[2], KEYS[1]
end
-- Piece by piece, so that no more than the bound of the smaller one is ever looked at.
local users, first = {}, 0
repeat
  local piece = redis.call('ZRANGE', small, first, first + 499)
  for i = 1, #piece do
    if #users < count and redis.call('ZSCORE', large, piece[i]) then
      users[#users + 1] = piece[i]
    end
  end
  first = first + 500
until #piece < 500 or #users >= count
return {'OK', 'users', users}
end
redis.register_function{function_name = 'russet_v1_follow_mutual', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Begins to publish a post, or finds out how far an earlier attempt came. Its moment is that of the
-- first attempt.
-- KEYS: 1 posts of the author; 2 posts that are not with all followers yet; 3 how far each came
-- ARGV: 1 post; 2 posts_max; 3 unfinished_max; 4 ttl_ms
-- Replies: BEGUN at_ms, cursor; DONE at_ms; BUSY (too many are unfinished)
-- Errors: INVALID post, posts_max, unfinished_max, ttl_ms
local posts_max, unfinished_max = whole(ARGV[2], 1, 1e6), whole(ARGV[3], 1, 1e6)
local ttl_ms = whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('post') end
if not posts_max then return refuse('posts_max') end
if not unfinished_max then return refuse('unfinished_max') end
if not ttl_ms then return refuse('ttl_ms') end
local at = redis.call('ZSCORE', KEYS[2], ARGV[1])
if at then
  local cursor = redis.call('HGET', KEYS[3], ARGV[1]) or ''
  return {'BEGUN', 'at_ms', tonumber(at), 'cursor', cursor}
end
at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if at then return {'DONE', 'at_ms', tonumber(at)} end
if redis.call('ZCARD', KEYS[2]) >= unfinished_max then return {'BUSY'} end
at = now_ms()
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -posts_max - 1)
redis.call('ZADD', KEYS[2], at, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'BEGUN', 'at_ms', at, 'cursor', ''}
end
redis.register_function{function_name = 'russet_v1_feed_begin', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
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
end
redis.register_function{function_name = 'russet_v1_feed_push', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Notes how far a post came, or that it is with all followers.
-- KEYS: 1 posts that are not with all followers yet; 2 how far each came
-- ARGV: 1 post; 2 cursor, empty at the end; 3 ttl_ms
-- Replies: OK
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[3], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
if ARGV[2] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
elseif redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'OK'}
end
redis.register_function{function_name = 'russet_v1_feed_progress', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Posts of an author that are not with all followers yet, the oldest first.
-- KEYS: 1 posts that are not with all followers yet
-- Replies: OK posts
return {'OK', 'posts', redis.call('ZRANGE', KEYS[1], 0, 999)}
end
redis.register_function{function_name = 'russet_v1_feed_unfinished', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- A page of posts, the newest first, behind the last one of the page before. Posts of the same
-- moment are told apart, so that none is skipped or repeated.
-- KEYS: 1 the inbox, or the posts of an author
-- ARGV: 1 count; 2 at_ms and 3 post of the last one of the page before, or empty
-- Replies: OK posts (post, at_ms, ...)
-- Errors: INVALID count, cursor
local count, at_ms = whole(ARGV[1], 1, 1000), 0
if not count then return refuse('count') end
if ARGV[2] ~= '' then
  at_ms = whole(ARGV[2], 0, 1e15)
  if not at_ms then return refuse('cursor') end
end
local first = 0
if ARGV[2] ~= '' then
  -- By bytes, as the server sorts them: `<` may follow the server's locale.
  local function is_ahead(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = string.byte(a, i), string.byte(b, i)
      if x ~= y then return x > y end
    end
    return #a >= #b
  end
  local text = string.format('%.0f', at_ms)
  local low = redis.call('ZCOUNT', KEYS[1], '(' .. text, '+inf')
  local high = redis.call('ZCOUNT', KEYS[1], text, '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle, 'REV')[1]
    if is_ahead(found, ARGV[3]) then low = middle + 1 else high = middle end
  end
  first = low
end
return {'OK', 'posts',
  redis.call('ZRANGE', KEYS[1], first, first + count - 1, 'REV', 'WITHSCORES')}
end
redis.register_function{function_name = 'russet_v1_feed_scroll', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Puts a place where it is, moves it, or removes it.
-- KEYS: 1 the places
-- ARGV: 1 SET or CLEAR; 2 place; 3 longitude; 4 latitude; 5 places_max; 6 ttl_ms after the last
-- change
-- Replies: NEW; MOVED; REMOVED; MISSING; FULL
-- Errors: INVALID how, place, longitude, latitude, places_max, ttl_ms
local places_max, ttl_ms = whole(ARGV[5], 1, 1e9), whole(ARGV[6], 1, 1e13)
if ARGV[1] ~= 'SET' and ARGV[1] ~= 'CLEAR' then return refuse('how') end
if ARGV[2] == '' then return refuse('place') end
if not places_max then return refuse('places_max') end
if not ttl_ms then return refuse('ttl_ms') end
if ARGV[1] == 'CLEAR' then
  return {redis.call('ZREM', KEYS[1], ARGV[2]) == 1 and 'REMOVED' or 'MISSING'}
end
local longitude = decimal(ARGV[3], -180, 180)
local latitude = decimal(ARGV[4], -85.05112878, 85.05112878)
if not longitude then return refuse('longitude') end
if not latitude then return refuse('latitude') end
local is_there = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not is_there and redis.call('ZCARD', KEYS[1]) >= places_max then return {'FULL'} end
redis.call('GEOADD', KEYS[1], ARGV[3], ARGV[4], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {is_there and 'MOVED' or 'NEW'}
end
redis.register_function{function_name = 'russet_v1_nearby_place', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 6 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- A page of places around a point, the nearest first, behind the last one of the page before.
-- KEYS: 1 the places
-- ARGV: 1 longitude; 2 latitude; 3 radius_m; 4 count; 5 distance and 6 place of the last one of the
-- page before, or empty; 7 how many were on all pages before
-- Replies: OK places (place, distance in metres, ...), is_last (1 or 0)
-- Errors: INVALID longitude, latitude, radius_m, count, cursor
local DEPTH_MAX = 10000
local longitude = decimal(ARGV[1], -180, 180)
local latitude = decimal(ARGV[2], -85.05112878, 85.05112878)
local radius, count = decimal(ARGV[3], 0, 25000000), whole(ARGV[4], 1, 1000)
local distance, seen = decimal(ARGV[5], 0, 25000000), whole(ARGV[7], 0, DEPTH_MAX)
if not longitude then return refuse('longitude') end
if not latitude then return refuse('latitude') end
if not radius or radius == 0 then return refuse('radius_m') end
if not count then return refuse('count') end
if not seen or (ARGV[5] ~= '' and not distance) then return refuse('cursor') end

-- By bytes: `<` may follow the server's locale.
local function is_after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
local function is_before(a, b)
  local x, y = tonumber(a[2]), tonumber(b[2])
  if x ~= y then return x < y end
  return is_after(b[1], a[1])
end

local wanted = math.min(seen + count + 1, DEPTH_MAX)
while true do
  local found = redis.call('GEOSEARCH', KEYS[1], 'FROMLONLAT', ARGV[1], ARGV[2], 'BYRADIUS',
    ARGV[3], 'm', 'ASC', 'COUNT', wanted, 'WITHDIST')
  local is_all = #found < wanted or wanted == DEPTH_MAX
  table.sort(found, is_before)
  local known = #found
  if not is_all then
    -- Of those that are as far as the last one there may be more, and they have no order yet.
    while known > 0 and found[known][2] == found[#found][2] do known = known - 1 end
  end
  local page, left = {}, 0
  for i = 1, known do
    local place, away = found[i][1], tonumber(found[i][2])
    if not distance or away > distance or (away == distance and is_after(place, ARGV[6])) then
      if #page < 2 * count then
        page[#page + 1] = place
        page[#page + 1] = found[i][2]
      else
        left = left + 1
      end
    end
  end
  if is_all or #page == 2 * count then
    return {'OK', 'places', page, 'is_last', is_all and left == 0 and 1 or 0}
  end
  wanted = math.min(wanted * 2, DEPTH_MAX)
end
end
redis.register_function{function_name = 'russet_v1_nearby_search', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 7 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Creates a value that is not there yet.
-- KEYS: 1 request marker; 2 the value
-- ARGV: 1 request_ttl_ms; 2 value; 3 ttl_ms
-- Replies: CREATED; EXISTS current
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[3], 1, 1e13)
if not ttl_ms then
  return refuse('ttl_ms')
end
local current = redis.call('GET', KEYS[2])
if current then
  return {'EXISTS', 'current', current}, true
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ttl_ms)
return {'CREATED'}
end
redis.register_function{function_name = 'russet_v1_state_create', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Replaces a value if it is what one expects. Its time to live stays as it was.
-- KEYS: 1 request marker; 2 the value
-- ARGV: 1 request_ttl_ms; 2 expected; 3 next
-- Replies: SWAPPED; ALREADY, it is the next one; DIFFERS current; MISSING
local current = redis.call('GET', KEYS[2])
if not current then
  return {'MISSING'}, true
elseif current == ARGV[2] then
  redis.call('SET', KEYS[2], ARGV[3], 'KEEPTTL')
  return {'SWAPPED'}
elseif current == ARGV[3] then
  return {'ALREADY'}, true
end
return {'DIFFERS', 'current', current}, true
end
redis.register_function{function_name = 'russet_v1_state_swap', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Creates a record in a state, with version 1, unless it is there.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 state; 3 ttl_ms; then fields and values
-- Replies: OPENED version; EXISTS state, version
-- Errors: INVALID state, ttl_ms, fields; CORRUPT record
local ttl_ms = whole(ARGV[3], 1, 1e13)
if ARGV[2] == '' or string.find(ARGV[2], ',', 1, true) then
  return refuse('state')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif #ARGV % 2 == 0 or #ARGV > 200 then
  return refuse('fields')
end
for index = 4, #ARGV, 2 do
  local field = ARGV[index]
  if field == 'state' or field == 'version' or field == 'created_at_ms'
    or field == 'updated_at_ms' then
    return refuse('fields')
  end
end
local found = redis.call('HMGET', KEYS[2], 'state', 'version')
if found[1] and found[2] then
  return {'EXISTS', 'state', found[1], 'version', tonumber(found[2])}, true
elseif redis.call('EXISTS', KEYS[2]) == 1 then
  return redis.error_reply('CORRUPT record')
end
local now = string.format('%.0f', now_ms())
for index = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
end
redis.call('HSET', KEYS[2], 'state', ARGV[2], 'version', 1, 'created_at_ms', now,
  'updated_at_ms', now)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'OPENED', 'version', 1}
end
redis.register_function{function_name = 'russet_v1_state_open', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Moves a record to another state, with all its changes, if state, version and conditions allow it.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 state to move to; 3 states to move from, with commas between;
-- 4 expected version, 0 for any; 5 ttl_ms, 0 leaves it as it is; 6 number of conditions, then for
-- each: eq, ne, lt, le, gt, ge, has or lacks, a field, a value; then for each change: set, add or
-- remove, a field, a value
-- Replies: APPLIED version, sums (of the fields added to); WRONG_STATE state, version;
-- WRONG_VERSION state, version; REFUSED field; MISSING
-- Errors: INVALID state, version, ttl_ms, conditions, changes; CORRUPT record; OVERFLOW a sum is
-- beyond 9e15
local expected, ttl_ms = whole(ARGV[4], 0, 9e15), whole(ARGV[5], 0, 1e13)
local conditions = whole(ARGV[6], 0, 32)
if ARGV[2] == '' or string.find(ARGV[2], ',', 1, true) then
  return refuse('state')
elseif not expected then
  return refuse('version')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not conditions or #ARGV < 6 + conditions * 3 then
  return refuse('conditions')
elseif #ARGV % 3 ~= 0 or #ARGV > 300 then
  return refuse('changes')
end
local changes = 7 + conditions * 3
local COMPARES = {lt = true, le = true, gt = true, ge = true}
local LOOKS = {eq = true, ne = true, has = true, lacks = true}
for index = 7, changes - 1, 3 do
  local kind, value = ARGV[index], ARGV[index + 2]
  if not LOOKS[kind] and not (COMPARES[kind] and decimal(value, -2 ^ 63, 2 ^ 63)) then
    return refuse('conditions')
  end
end
for index = changes, #ARGV, 3 do
  local kind, field, by = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if (kind ~= 'set' and kind ~= 'add' and kind ~= 'remove')
    or (kind == 'add' and not whole(by, -9e15, 9e15))
    or field == 'state' or field == 'version' or field == 'created_at_ms'
    or field == 'updated_at_ms' then
    return refuse('changes')
  end
end

local found = redis.call('HMGET', KEYS[2], 'state', 'version')
local state, version = found[1], tonumber(found[2] or '')
if not state or not version then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    return redis.error_reply('CORRUPT record')
  end
  return {'MISSING'}, true
elseif not string.find(',' .. ARGV[3] .. ',', ',' .. state .. ',', 1, true) then
  return {'WRONG_STATE', 'state', state, 'version', version}, true
elseif expected ~= 0 and expected ~= version then
  return {'WRONG_VERSION', 'state', state, 'version', version}, true
end

local function holds(kind, current, value)
  if kind == 'has' then
    return current
  elseif kind == 'lacks' then
    return not current
  elseif kind == 'eq' then
    return current == value
  elseif kind == 'ne' then
    return current ~= value
  end
  local left, right = tonumber(current or 0), tonumber(value)
  if not left or not right then
    return false
  end
  return (kind == 'lt' and left < right) or (kind == 'le' and left <= right)
    or (kind == 'gt' and left > right) or (kind == 'ge' and left >= right)
end
for index = 7, changes - 1, 3 do
  local current = redis.call('HGET', KEYS[2], ARGV[index + 1])
  if not holds(ARGV[index], current, ARGV[index + 2]) then
    return {'REFUSED', 'field', ARGV[index + 1]}, true
  end
end
-- What each field comes to, one change after the other, before anything is written: false for one
-- that goes.
local becomes, sums = {}, {}
for index = changes, #ARGV, 3 do
  local kind, field, value = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if kind == 'add' then
    local before = becomes[field]
    if before == nil then before = redis.call('HGET', KEYS[2], field) end
    before = whole(before or '0', -9e15, 9e15)
    if not before then return redis.error_reply('CORRUPT record: a number is none') end
    local sum = before + value
    if sum > 9e15 or sum < -9e15 then return redis.error_reply('OVERFLOW ' .. field) end
    sums[#sums + 1] = sum
    value = string.format('%.0f', sum)
  end
  becomes[field] = kind ~= 'remove' and value
end
for field, value in pairs(becomes) do
  if value then
    redis.call('HSET', KEYS[2], field, value)
  else
    redis.call('HDEL', KEYS[2], field)
  end
end
redis.call('HSET', KEYS[2], 'state', ARGV[2], 'version', string.format('%.0f', version + 1),
  'updated_at_ms', string.format('%.0f', now_ms()))
if ttl_ms > 0 then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'APPLIED', 'version', version + 1, 'sums', sums}
end
redis.register_function{function_name = 'russet_v1_state_apply', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 6 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads a record with all its fields.
-- KEYS: 1 the record
-- Replies: FOUND fields, names and values one after the other; MISSING
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then
  return {'MISSING'}
end
return {'FOUND', 'fields', fields}
end
redis.register_function{function_name = 'russet_v1_state_load', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Stores an object and its entry in the index, and removes the entry of what it was before.
-- KEYS: 1 request marker; 2 the object; 3 the index; 4 the indexed value of each object; 5 until
-- when each object lives
-- ARGV: 1 request_ttl_ms; 2 id; 3 indexed value; 4 ttl_ms; 5 objects_max; 6 expected version, 0
-- for any; then fields and values
-- Replies: STORED version; STALE version; FULL
-- Errors: INVALID id, value, ttl_ms, objects_max, version, fields
local id, value = ARGV[2], ARGV[3]
local ttl_ms, objects_max = whole(ARGV[4], 1, 1e13), whole(ARGV[5], 1, 1e6)
local expected = whole(ARGV[6], 0, 9e15)
if id == '' or string.find(id, '\0', 1, true) then
  return refuse('id')
elseif string.find(value, '\0', 1, true) then
  return refuse('value')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not objects_max then
  return refuse('objects_max')
elseif not expected then
  return refuse('version')
elseif #ARGV % 2 ~= 0 or #ARGV > 300 then
  return refuse('fields')
end
for index = 7, #ARGV, 2 do
  if ARGV[index] == 'version' then return refuse('fields') end
end
local now = now_ms()
-- Objects whose time is over leave the index, a few with each write.
local dead = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, 16)
for _, gone in ipairs(dead) do
  local was = redis.call('HGET', KEYS[4], gone)
  if was then
    redis.call('ZREM', KEYS[3], was .. '\0' .. gone)
    redis.call('HDEL', KEYS[4], gone)
  end
  redis.call('ZREM', KEYS[5], gone)
end

-- If one of the three was lost, the others say what it had; an object whose deadline was lost lives as
-- long as this one.
local size, known = redis.call('ZCARD', KEYS[3]), redis.call('HLEN', KEYS[4])
if size ~= known or redis.call('ZCARD', KEYS[5]) < known then
  for first = 0, known < size and size - 1 or -1, 1000 do
    for _, entry in ipairs(redis.call('ZRANGE', KEYS[3], first, first + 999)) do
      local at = string.find(entry, '%z')
      redis.call('HSET', KEYS[4], string.sub(entry, at + 1), string.sub(entry, 1, at - 1))
    end
  end
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', KEYS[4], cursor, 'COUNT', 1000)
    cursor = page[1]
    for index = 1, #page[2], 2 do
      redis.call('ZADD', KEYS[3], 0, page[2][index + 1] .. '\0' .. page[2][index])
      redis.call('ZADD', KEYS[5], 'NX', now + ttl_ms, page[2][index])
    end
  until cursor == '0'
  for index = 3, 5 do
    if redis.call('PTTL', KEYS[index]) < ttl_ms then
      redis.call('PEXPIRE', KEYS[index], ttl_ms)
    end
  end
end

local version = tonumber(redis.call('HGET', KEYS[2], 'version') or 0)
if expected ~= 0 and expected ~= version then
  return {'STALE', 'version', version}, true
end
local was = redis.call('HGET', KEYS[4], id)
if not was and redis.call('HLEN', KEYS[4]) >= objects_max then
  return {'FULL'}, true
end
redis.call('DEL', KEYS[2])
for index = 7, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
end
redis.call('HSET', KEYS[2], 'version', string.format('%.0f', version + 1))
redis.call('PEXPIRE', KEYS[2], ttl_ms)
if was and was ~= value then
  redis.call('ZREM', KEYS[3], was .. '\0' .. id)
end
redis.call('ZADD', KEYS[3], 0, value .. '\0' .. id)
redis.call('HSET', KEYS[4], id, value)
redis.call('ZADD', KEYS[5], now + ttl_ms, id)
for index = 3, 5 do
  if redis.call('PTTL', KEYS[index]) < ttl_ms then
    redis.call('PEXPIRE', KEYS[index], ttl_ms)
  end
end
return {'STORED', 'version', version + 1}
end
redis.register_function{function_name = 'russet_v1_state_index_put', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 5 or #ARGV < 6 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes an object and its entry in the index.
-- KEYS: 1 the object; 2 the index; 3 the indexed value of each object; 4 until when each lives
-- ARGV: 1 id
-- Replies: REMOVED; MISSING
local was = redis.call('HGET', KEYS[3], ARGV[1])
-- Keys that are not what they should be fail here, before anything is written.
local size = redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[4])
local removed = redis.call('DEL', KEYS[1])
if was then
  redis.call('ZREM', KEYS[2], was .. '\0' .. ARGV[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
elseif size > redis.call('HLEN', KEYS[3]) then
  -- The indexed values were lost: the entry of this object is looked for.
  local suffix, first = '\0' .. ARGV[1], 0
  repeat
    local page = redis.call('ZRANGE', KEYS[2], first, first + 999)
    for _, entry in ipairs(page) do
      if string.sub(entry, -#suffix) == suffix then
        redis.call('ZREM', KEYS[2], entry)
      end
    end
    first = first + 1000
  until #page < 1000
end
redis.call('ZREM', KEYS[4], ARGV[1])
return {removed == 1 and 'REMOVED' or 'MISSING'}
end
redis.register_function{function_name = 'russet_v1_state_index_remove', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 4 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Lists objects by their indexed value, in the order of their ids, a page at a time.
-- KEYS: 1 the index; 2 until when each object lives
-- ARGV: 1 indexed value; 2 the id behind which to begin, empty for the first page; 3 limit
-- Replies: OK ids, next (empty at the end)
-- Errors: INVALID limit
local limit = whole(ARGV[3], 1, 1000)
if not limit then
  return refuse('limit')
end
local prefix = ARGV[1] .. '\0'
local from = ARGV[2] == '' and '[' .. prefix or '(' .. prefix .. ARGV[2]
local entries = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '\1', 'LIMIT', 0, limit)
local ids, last, now = {}, '', now_ms()
for _, entry in ipairs(entries) do
  last = string.sub(entry, #prefix + 1)
  local until_ms = redis.call('ZSCORE', KEYS[2], last)
  if until_ms and tonumber(until_ms) > now then
    ids[#ids + 1] = last
  end
end
return {'OK', 'ids', ids, 'next', #entries == limit and last or ''}
end
redis.register_function{function_name = 'russet_v1_state_index_find', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 3 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Removes the entries of objects whose time is over, up to a number.
-- KEYS: 1 the index; 2 the indexed value of each object; 3 until when each object lives
-- ARGV: 1 limit
-- Replies: OK removed, left
-- Errors: INVALID limit
local limit = whole(ARGV[1], 1, 1000)
if not limit then
  return refuse('limit')
end
local now = now_ms()
local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, limit)
for _, gone in ipairs(dead) do
  local was = redis.call('HGET', KEYS[2], gone)
  if was then
    redis.call('ZREM', KEYS[1], was .. '\0' .. gone)
    redis.call('HDEL', KEYS[2], gone)
  end
  redis.call('ZREM', KEYS[3], gone)
end
return {'OK', 'removed', #dead, 'left', redis.call('ZCOUNT', KEYS[3], '-inf', now)}
end
redis.register_function{function_name = 'russet_v1_state_index_sweep', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 3 or #ARGV < 1 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Records a token of a user, who has at most so many. The same token is recorded once: it may run twice.
-- KEYS: 1 the token; 2 the tokens of the user
-- ARGV: 1 member; 2 tenant_id; 3 subject_id; 4 kind; 5 scopes; 6 ttl_ms; 7 safety_ms; 8 token_count_max
-- Replies: ISSUED expires_at_ms; FULL
-- Errors: INVALID member, subject_id, ttl_ms, safety_ms, token_count_max
local ttl, safety = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 0, 1e13)
local count_max = whole(ARGV[8], 1, 256)
if ARGV[1] == '' then return refuse('member') end
if ARGV[3] == '' then return refuse('subject_id') end
if not ttl then return refuse('ttl_ms') end
if not safety then return refuse('safety_ms') end
if not count_max then return refuse('token_count_max') end
local expires_at = redis.call('HGET', KEYS[1], 'expires_at_ms')
if expires_at then
  return {'ISSUED', 'expires_at_ms', expires_at}
end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= count_max then
  return {'FULL'}
end
redis.call('HSET', KEYS[1], 'schema_version', 1, 'tenant_id', ARGV[2], 'subject_id', ARGV[3],
  'kind', ARGV[4], 'scopes', ARGV[5], 'created_at_ms', now, 'expires_at_ms', now + ttl)
redis.call('PEXPIRE', KEYS[1], ttl + safety)
redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
if redis.call('PTTL', KEYS[2]) < ttl then
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {'ISSUED', 'expires_at_ms', now + ttl}
end
redis.register_function{function_name = 'russet_v1_token_issue', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 8 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Reads the fields of a token that decide on a request, and no more.
-- KEYS: 1 the token
-- ARGV: none
-- Replies: VALID tenant_id, subject_id, scopes, expires_in_ms; REVOKED; EXPIRED; UNKNOWN; CORRUPT field
local token = redis.pcall('HMGET', KEYS[1], 'expires_at_ms', 'revoked_at_ms', 'tenant_id', 'subject_id',
  'scopes')
if token.err then
  return {'CORRUPT', 'field', 'type'}
elseif not token[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  return {'UNKNOWN'}
elseif token[2] then
  return {'REVOKED'}
end
local expires_at, now = tonumber(token[1]), now_ms()
if not expires_at then
  return {'CORRUPT', 'field', 'expires_at_ms'}
elseif expires_at <= now then
  return {'EXPIRED'}
elseif not token[3] or not token[4] or not token[5] then
  return {'CORRUPT', 'field', 'subject_id'}
end
return {'VALID', 'tenant_id', token[3], 'subject_id', token[4], 'scopes', token[5],
  'expires_in_ms', expires_at - now}
end
redis.register_function{function_name = 'russet_v1_token_check', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- The tokens of a user that have not expired.
-- KEYS: 1 the tokens of the user
-- ARGV: none
-- Replies: OK members
return {'OK', 'members', redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now_ms(), '+inf', 'LIMIT', 0, 256)}
end
redis.register_function{function_name = 'russet_v1_token_list', flags = {'no-writes'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 0 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Revokes tokens of a user. Given all of them, it says so if there are others meanwhile and revokes none.
-- KEYS: 1 the tokens of the user; from 2 on the tokens to revoke
-- ARGV: 1 reason; 2 all, or some to revoke those given; from 3 on the members of the keys from 2 on
-- Replies: REVOKED revoked_count; CHANGED
-- Errors: INVALID mode, members
if ARGV[2] ~= 'all' and ARGV[2] ~= 'some' then return refuse('mode') end
if #ARGV - 2 ~= #KEYS - 1 or #KEYS > 257 then return refuse('members') end
local now = now_ms()
if ARGV[2] == 'all' then
  local is_given = {}
  for index = 3, #ARGV do
    is_given[ARGV[index]] = true
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, 256)) do
    if not is_given[member] then
      return {'CHANGED'}
    end
  end
end
local revoked = 0
for index = 2, #KEYS do
  local token = redis.pcall('HMGET', KEYS[index], 'expires_at_ms', 'revoked_at_ms')
  if token.err then
    -- It is no token, good for nothing, and must not keep the others from being revoked.
    redis.call('DEL', KEYS[index])
  elseif token[1] and not token[2] then
    -- Its TTL stays: it is known as revoked for as long as it could have been used.
    redis.call('HSET', KEYS[index], 'revoked_at_ms', now, 'revoked_reason', ARGV[1])
    revoked = revoked + 1
  end
  redis.call('ZREM', KEYS[1], ARGV[index + 1])
end
return {'REVOKED', 'revoked_count', revoked}
end
redis.register_function{function_name = 'russet_v1_token_revoke', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
local function step(KEYS, ARGV)
-- Revokes a token that was issued elsewhere: it is known as revoked for so long. May run twice.
-- KEYS: 1 the token
-- ARGV: 1 ttl_ms; 2 reason
-- Replies: REVOKED
-- Errors: INVALID ttl_ms
local ttl = whole(ARGV[1], 1, 1e13)
if not ttl then return refuse('ttl_ms') end
local now = now_ms()
redis.call('HSETNX', KEYS[1], 'schema_version', 1)
redis.call('HSETNX', KEYS[1], 'created_at_ms', now)
redis.call('HSETNX', KEYS[1], 'expires_at_ms', now + ttl)
if redis.call('HSETNX', KEYS[1], 'revoked_at_ms', now) == 1 then
  redis.call('HSET', KEYS[1], 'revoked_reason', ARGV[2])
end
if redis.call('PTTL', KEYS[1]) < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return {'REVOKED'}
end
redis.register_function{function_name = 'russet_v1_token_deny', flags = {'allow-oom'}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 2 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- The digests of the latest tokens of a user that were used or replaced, the last one first: a
-- request to issue one of them comes too late.
local SPENT_BYTES_MAX = 1024

local function is_spent(spent, digest)
  return string.find(' ' .. spent .. ' ', ' ' .. digest .. ' ', 1, true)
end

local function with_spent(spent, digest)
  return string.sub(digest .. ' ' .. spent, 1, SPENT_BYTES_MAX)
end
local function step(KEYS, ARGV)
-- Stores the digest of a single-use token of a user; one that was issued before is worth nothing then.
-- KEYS: 1 the token of the user
-- ARGV: 1 digest of the token; 2 tenant_id; 3 subject_id; 4 ttl_ms
-- Replies: ISSUED
-- Errors: INVALID digest, subject_id, ttl_ms
local ttl = whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('digest') end
if ARGV[3] == '' then return refuse('subject_id') end
if not ttl then return refuse('ttl_ms') end
local kept = redis.call('HMGET', KEYS[1], 'token_digest', 'spent')
local spent = kept[2] or ''
if is_spent(spent, ARGV[1]) then
  -- A request that was late: the token was used or replaced meanwhile.
  return {'ISSUED'}
end
if kept[1] and kept[1] ~= ARGV[1] then
  spent = with_spent(spent, kept[1])
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'schema_version', 1, 'token_digest', ARGV[1], 'tenant_id', ARGV[2],
  'subject_id', ARGV[3], 'created_at_ms', now_ms(), 'spent', spent)
redis.call('PEXPIRE', KEYS[1], ttl)
return {'ISSUED'}
end
redis.register_function{function_name = 'russet_v1_reset_issue', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 1 or #ARGV < 4 then return refuse('count') end
return (step(KEYS, ARGV))
end}
end

do
-- The digests of the latest tokens of a user that were used or replaced, the last one first: a
-- request to issue one of them comes too late.
local SPENT_BYTES_MAX = 1024


local function with_spent(spent, digest)
  return string.sub(digest .. ' ' .. spent, 1, SPENT_BYTES_MAX)
end
local function step(KEYS, ARGV)
-- Uses a single-use token up.
-- KEYS: 1 marker of the request; 2 the token of the user
-- ARGV: 1 request_ttl_ms; 2 digest of the token
-- Replies: CONSUMED tenant_id, subject_id; UNKNOWN
-- Errors: INVALID digest
if ARGV[2] == '' then return refuse('digest') end
local token = redis.call('HMGET', KEYS[2], 'token_digest', 'tenant_id', 'subject_id', 'spent')
if token[1] ~= ARGV[2] then
  return {'UNKNOWN'}, true
end
-- What is left, as long as the token would have lived, is that it was used.
redis.call('HSET', KEYS[2], 'spent', with_spent(token[4] or '', ARGV[2]))
redis.call('HDEL', KEYS[2], 'token_digest', 'tenant_id', 'subject_id', 'created_at_ms')
return {'CONSUMED', 'tenant_id', token[2], 'subject_id', token[3]}
end
redis.register_function{function_name = 'russet_v1_reset_consume', flags = {}, callback = function(KEYS, ARGV)
if #KEYS < 2 or #ARGV < 2 then return refuse('count') end
local kept = remembered(KEYS[1], ARGV[1])
if kept then return kept end
return remember(KEYS[1], ARGV[1], step(KEYS, ARGV))
end}
end
