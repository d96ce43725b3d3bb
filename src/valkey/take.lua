-- Leases tokens of each bucket to an instance.
-- KEYS: the buckets. ARGV: the seconds of a window; into how many parts the rest is divided if others take from it too;
-- and for each bucket the name of the instance, the limit, what the instance has used and what it holds, what it takes
-- others to have taken, the start of its window, and the tokens that it needs and that are welcome beyond those used.
-- A bucket is a hash: the start of its window, the tokens taken in all, those of them that are taken as known but that no
-- instance has said to be its own since Valkey lost its data, and those of each instance by its name.
local window, parts = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = tonumber(redis.call('TIME')[1])
local function isActive(start) return start and now >= start and now < start + window end
local function count(text) return math.floor(math.min(4e9, math.max(0, tonumber(text) or 0))) end
local reply = {now}
for i, key in ipairs(KEYS) do
  local name = ARGV[8 * i - 5]
  local numbers = {}
  for j = 1, 7 do numbers[j] = tonumber(ARGV[8 * i - 5 + j]) end
  local limit, used, held, others, start, needed, more = unpack(numbers)
  local stored = redis.call('HMGET', key, 'start', 'taken', 'unnamed', name)
  local from = tonumber(stored[1] or '')
  if not isActive(from) then
    redis.call('DEL', key)
    stored, from = {}, isActive(start) and start or now
  end
  local taken, unnamed, own = count(stored[2]), count(stored[3]), count(stored[4])
  if own < math.max(used, held) then
    -- It granted tokens without asking, or Valkey has lost what it knew.
    local unknown = math.max(used, held) - own
    own = own + unknown
    taken, unnamed = taken + math.max(0, unknown - unnamed), math.max(0, unnamed - unknown)
    local missing = math.max(0, own + others - taken)
    taken, unnamed = taken + missing, unnamed + missing
  end
  local left = math.max(0, limit - taken)
  if taken > own then more = math.max(0, math.min(more, math.floor((left - needed) / parts))) end
  local granted = math.max(0, math.min(left, used + needed + more - own))
  redis.call('HSET', key, 'start', from, 'taken', taken + granted, 'unnamed', unnamed, name, own + granted)
  redis.call('EXPIRE', key, from + window - now)
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = from, own + granted, math.max(0, taken - own)
end
return reply
