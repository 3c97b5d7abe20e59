#!/bin/sh
# Runs libFuzzer programs one after the other: fuzz.sh DIR SECONDS NAME...
# DIR holds the programs and seeds/; it gets the corpora, the logs and the inputs that broke a program.
# A program that was not built is skipped. Ends with the line "fuzz: N passed, N failed, N skipped".

set -u

dir=$1
seconds=$2
shift 2

case $seconds in
'' | 0 | *[!0-9]*)
	echo "FUZZ_S=$seconds: a whole number of seconds from 1 on is allowed" >&2
	exit 2
	;;
esac

# A quarter of a gigabyte of freed memory is more than a target of a few kilobytes needs.
export ASAN_OPTIONS="quarantine_size_mb=32:${ASAN_OPTIONS:-}"

passed=0
failed=0
skipped=0

for name; do
	if [ ! -x "$dir/$name" ]; then
		echo "$name: skipped, clang is not installed"
		skipped=$((skipped + 1))
		continue
	fi
	mkdir -p "$dir/corpus/$name"
	if "$dir/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix="$dir/$name-" "$dir/corpus/$name" "$dir/seeds" >"$dir/$name.log" 2>&1; then
		passed=$((passed + 1))
		sed -n "s/^stat::number_of_executed_units: */$name: passed, inputs: /p" "$dir/$name.log"
	else
		failed=$((failed + 1))
		echo "$name: failed, the end of $dir/$name.log:"
		tail -n 40 "$dir/$name.log"
	fi
done

echo "fuzz: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
