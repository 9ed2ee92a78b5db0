my %h; for my $i (1..600000) { $h{"key$i"} = [ map { "v".($i*$_) } 1..3 ]; } my @k = sort keys %h; delete @h{@k[0..200000]}; print scalar(keys %h),"\n";
