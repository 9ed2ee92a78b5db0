h = {}
300000.times { |i| h["k#{i}"] = (0..5).map { |j| "v#{i*j}" } }
puts h.values.flatten.sort.uniq.size
