# Perl: a hash of small arrays of strings, sorted, a third of it deleted. perl keys.pl KEYS
use strict;
use warnings;

my $keys = shift // 100_000;
my %table;
for my $i ( 1 .. $keys ) {
    $table{"key$i"} = [ map { "v" . ( $i * $_ ) } 1 .. 3 ];
}
my @sorted = sort keys %table;
delete @table{ @sorted[ 0 .. $keys / 3 - 1 ] };
print scalar( keys %table ), "\n";
