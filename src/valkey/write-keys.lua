-- Writes the keys file ARGV[3] with the revision ARGV[2], unless the revision is no longer ARGV[1].
-- KEYS[1] is the hash of the API keys.
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'file', ARGV[3])
return 1
