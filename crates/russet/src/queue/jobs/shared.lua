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
local function mark_counted(meta, jobs_before)
  if jobs_before == 0 then
    redis.call('HSET', meta, 'counted', '1')
  end
end

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
