# A system with version 1 of a package (set-up), its upgrade to version 2 with --$2-unsafe-io (run), and what must be there after
# a crash (check). dpkg says what it does without --force-unsafe-io: it syncs a file before it renames it, so that none is
# empty. The version that its database has as installed is the one that is there, and an upgrade that was cut short can
# be done again. The package has one file of its configuration, and one other.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
files="etc/greeting.conf usr/share/greeting"

# Only root can give files to root; in the sandbox of the check, everybody can be root.
[ "$(id -u)" = 0 ] || exec unshare --map-root-user sh "$0" "$@"

dpkg_here() { dpkg --root="$PWD" --log=/dev/null "$@"; }

make_package() {
    made=$(mktemp -d)
    for file in $files; do mkdir -p "$made/${file%/*}" && echo "of version $1" >"$made/$file"; done
    mkdir "$made/DEBIAN"
    echo /etc/greeting.conf >"$made/DEBIAN/conffiles"
    printf '%s\n' 'Package: greeting' "Version: $1" 'Architecture: all' 'Maintainer: a <a@example.org>' \
        'Description: greets' >"$made/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$made" "$1.deb" >/dev/null
}

wrong() {
    echo "$1" | head -n 1 | sed "s#$PWD##g"
    exit 1
}

# All files are those of version $1.
must_have() {
    for file in $files; do
        [ "$(cat "$file" 2>&1)" = "of version $1" ] || wrong "$2, but $file is $(head -c 40 "$file" 2>&1)"
    done
}

case $1 in
set-up)
    mkdir -p var/lib/dpkg/info var/lib/dpkg/updates
    touch var/lib/dpkg/status
    make_package 1 && make_package 2 && dpkg_here --install 1.deb >/dev/null
    ;;
run) dpkg_here "--$2-unsafe-io" --install 2.deb >/dev/null && echo installed ;;
recover) dpkg_here --configure -a >/dev/null 2>&1; dpkg_here --install 2.deb >/dev/null ;;
check)
    for file in $files; do
        [ -e "$file" ] || wrong "$file is gone"
        case $(cat "$file" 2>&1) in
        'of version 1' | 'of version 2') ;;
        *) wrong "$file has neither content, and $(wc -c <"$file") bytes" ;;
        esac
    done
    known=$(dpkg-query --admindir=var/lib/dpkg --show --showformat '${db:Status-Status} ${Version}' greeting 2>&1) ||
        wrong "the database: $known"
    case $known in 'installed '*) must_have "${known#* }" "the database has $known" ;; esac
    [ ! -s "$POSTCRASH_ACKNOWLEDGED" ] || [ "$known" = 'installed 2' ] || wrong "installed, but the database has $known"
    # What was cut short while its files were replaced, dpkg asks its user to install again.
    dpkg_here --configure -a >/dev/null 2>&1
    said=$(dpkg_here --install 2.deb 2>&1) || wrong "cannot install: $said"
    must_have 2 "done again"
    said=$(dpkg_here --audit 2>&1) || wrong "cannot audit: $said"
    [ -z "$said" ] || wrong "--audit: $said"
    ;;
esac
