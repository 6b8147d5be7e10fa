"""The parts of a reproducer that are the same in every script. shell_script.py says how they are put together."""

HOLDS = r"""# Whether a file holds exactly these runs of bytes, each LENGTH:OCTAL.
holds() {
    local file=$1 run
    shift
    for run; do head -c "${run%:*}" /dev/zero | tr '\0' "\\${run#*:}"; done | cmp -s - "$file"
}
"""

FILL = r"""# Bytes of 0xff, so that what was never written is seen.
fill() { perl -e 'syswrite STDOUT, "\xff" x (1 << 20) or die for 1..shift' $((SECTORS / 2048)) >"$DISK"; }
"""

FLAKEY = r"""table() {
    dmsetup suspend --nolockfs cut
    dmsetup load cut --table "0 $SECTORS $*"
    dmsetup resume cut
}

dmsetup create cut --table "0 $SECTORS linear $DISK 0"
make
attach
setup
sync
operations
table flakey "$DISK" 0 0 180 1 drop_writes  # the power cut
umount "$MNT"
table linear "$DISK" 0
blockdev --flushbufs /dev/mapper/cut
"""

REPLAY = rf"""{FILL}
# Put the disk together as it was FLUSHES flushes after the mark `cut`, with the writes up to the next flush (or to the
# mark `end`) but for those at LOST, each SECTOR+SECTORS.
replay() {{
    perl - "$LOG" "$DISK" "$@" <<'EOF'
my ($log, $disk, $flushes, @lost) = @ARGV;
open L, '<:raw', $log and open D, '+<:raw', $disk or die $!;
sub get {{ my ($file, $at, $length) = @_; seek $file, $at, 0; read $file, my $data, $length; $data }}
sub put {{ my ($at, $data) = @_; seek D, $at, 0; print D $data or die $! }}
my (undef, undef, $entries, $size) = unpack 'Q<3 L<', get(*L, 0, 28);
my ($at, $seen, %old) = $size;
while ($entries--) {{
    my ($sector, $sectors, $flags, $length) = unpack 'Q<4', get(*L, $at, 32);
    my $mark = $flags & 8 ? get(*L, $at + 32, $length) : '';
    last if $mark =~ /^end/;
    $at += $size;
    if (!($flags & 4)) {{  # a discard has no data
        put($sector * $size, get(*L, $at, $sectors * $size));
        $at += $sectors * $size;
    }}
    my $flushed = defined $seen && $flags & 3;  # FLUSH, FUA
    next unless $flushed || $mark =~ /^cut/;
    $seen = $flushed ? $seen + 1 : 0;
    last if $seen > $flushes;
    next if $seen < $flushes;
    for (@lost) {{ my ($first, $count) = split /\+/; $old{{$_}} = get(*D, $first * 512, $count * 512) }}
}}
die "the log has no mark\n" unless defined $seen;
die "this kernel sent $seen flushes after the mark, and not $flushes\n" if $seen < $flushes;
/\d+/ and put($& * 512, $old{{$_}}) for keys %old;
close D or die $!;
EOF
}}

dmsetup create cut --table "0 $SECTORS log-writes $DISK $LOG"
make
attach
setup
sync
operations
dmsetup message cut 0 mark cut
last_operation
dmsetup message cut 0 mark end
umount "$MNT"
dmsetup remove cut
blockdev --flushbufs "$DISK"
blockdev --flushbufs "$LOG"
fill
"""
