# Ruby: a hash of small arrays of strings, flattened, sorted and made unique. ruby keys.rb KEYS
keys = Integer(ARGV.fetch(0, '50000'))
table = {}
keys.times { |i| table["key#{i}"] = (0..5).map { |j| "v#{i * j}" } }
puts table.values.flatten.sort.uniq.size
