-- Takes tokens from each bucket, or none if one of them has fewer.
-- KEYS: the buckets. ARGV: the seconds of a window, the tokens, and for each bucket its limit, its used tokens and the
-- start of its window as the caller knows them. So a Valkey that has lost its data learns them again.
local window, tokens = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = tonumber(redis.call('TIME')[1])
local function isActive(start) return now >= start and now < start + window end
local allowed = 1
local buckets = {}
for i, key in ipairs(KEYS) do
  local limit, used, start = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
  if used == 0 or not isActive(start) then used, start = 0, now end
  local storedUsed, storedStart = string.match(redis.call('GET', key) or '', '(%d+) (%d+)')
  if storedUsed and isActive(tonumber(storedStart)) then
    used, start = math.max(used, math.min(limit, tonumber(storedUsed))), tonumber(storedStart)
  end
  if used + tokens > limit then allowed = 0 end
  buckets[i] = {used, start}
end
local reply = {allowed, now}
for i, key in ipairs(KEYS) do
  local used, start = buckets[i][1] + allowed * tokens, buckets[i][2]
  if allowed == 1 then redis.call('SET', key, used .. ' ' .. start, 'EX', start + window - now) end
  reply[2 * i + 1], reply[2 * i + 2] = used, start
end
return reply
