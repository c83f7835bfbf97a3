#!/bin/sh
# The emergency stop of the local stack: stop.sh on|off ["reason"]. While it is on, all paid calls answer 503 and nothing is
# charged; it takes effect within five seconds. A deployed stack is stopped with the aws command in docs/DEPLOY.md.
set -eu
cd "$(dirname "$0")/.."
usage() { echo 'usage: local/stop.sh on|off ["reason"]' >&2; exit 2; }
[ -f .local/stack.json ] || { echo "no local stack is running: start one with make run in another terminal" >&2; exit 1; }
endpoint=$(sed -E 's/.*"database_url":"([^"]*)".*/\1/' .local/stack.json)
table=$(sed -E 's/.*"agents_table":"([^"]*)".*/\1/' .local/stack.json)
key='"pk":{"S":"SERVICE"},"sk":{"S":"STOP"}'
case ${1:-} in
  on)
    reason=$(printf '%s' "${2:-}" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')
    action=PutItem
    body="{\"TableName\":\"$table\",\"Item\":{$key,\"reason\":{\"S\":\"$reason\"}}}"
    ;;
  off)
    action=DeleteItem
    body="{\"TableName\":\"$table\",\"Key\":{$key}}"
    ;;
  *) usage ;;
esac
# The embedded database requires a signature but does not check it.
curl -sS --fail-with-body -o /dev/null "$endpoint/" \
  -H 'content-type: application/x-amz-json-1.0' -H "x-amz-target: DynamoDB_20120810.$action" \
  -H 'x-amz-date: 20260101T000000Z' \
  -H 'authorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' \
  -d "$body"
echo "emergency stop of paid calls: $1"
