-- Takes tokens from every bucket of a client, or none if one of them has fewer.
-- KEYS: the buckets, which are numbers of used tokens that expire when their window ends.
-- ARGV: the seconds of a window; the tokens to take; and for each bucket its limit, and as the instance has it:
-- the tokens counted here at its last answer, those that it has granted since, and the Unix second in which the window ends.
-- Returns 1 if the tokens were taken, else 0; the Unix second; and for each bucket the tokens used and the end of its
-- window.
local window, price = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now, nowMs = tonumber(time[1]), time[1] * 1000 + math.floor(time[2] / 1000)
local function isActive(last) return last > now and last <= now + window end
local used, ends, allowed = {}, {}, 1
for i, key in ipairs(KEYS) do
  local limit, counted, granted, lastEnd = unpack(ARGV, 4 * i - 1, 4 * i + 2)
  lastEnd = tonumber(lastEnd)
  used[i], ends[i] = 0, isActive(lastEnd) and lastEnd or now + window
  -- Negative if there is no such bucket.
  local lifeMs = redis.call('PTTL', key)
  local last = math.floor((nowMs + lifeMs + 500) / 1000)
  if lifeMs > 0 and isActive(last) then
    used[i] = math.min(4e9, math.max(0, tonumber(redis.pcall('GET', key) or '') or 0))
    ends[i] = last
  end
  -- If Valkey has lost its data, it learns from the instance what was used.
  if isActive(lastEnd) then used[i] = math.max(used[i], tonumber(counted)) + granted end
  if limit - used[i] < price then allowed = 0 end
end
local reply = {allowed, now}
for i, key in ipairs(KEYS) do
  used[i] = used[i] + allowed * price
  -- A refused request starts no window.
  if used[i] > 0 then
    redis.call('SET', key, string.format('%.0f', used[i]))
    redis.call('EXPIREAT', key, ends[i])
  end
  reply[2 * i + 1], reply[2 * i + 2] = used[i], ends[i]
end
return reply
