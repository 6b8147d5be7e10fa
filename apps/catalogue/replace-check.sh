# The file $1 has its old content or its new one, whole. With $2 = durable it has the new one once that was acknowledged.
case $(cat "$1" 2>&1) in
'the new content') exit 0 ;;
'the old content') [ "$2" = durable ] && grep -q replaced "$POSTCRASH_ACKNOWLEDGED" || exit 0
    echo "the new content was acknowledged and is lost" ;;
*) echo "$1 has neither content, and $(cat "$1" | wc -c) bytes" ;;
esac
exit 1
