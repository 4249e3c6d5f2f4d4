#!/bin/sh
# Measures once, and says something only when storage has become slower: cron mails what
# is printed. A line for crontab(5), every night at three:
#
#   0 3 * * *  cd /srv/bench && ./nightly.sh
set -eu

host=$(uname -n)
fathom --quiet job run nightly.fio --tag "host=$host" >/dev/null
fathom history nightly --tag "host=$host" --last 60 --fail-if 'slower > 5%' --allow-inconclusive >history.txt || {
    code=$?
    cat history.txt
    exit "$code"
}
