"""Who asked for what, and what allowed it: every IAM decision that the emulator takes for a function's role.

The emulator evaluates policies well, but gives them too little to decide on: it never sets `dynamodb:LeadingKeys`, so
every `ForAllValues` condition on partition keys passes because there is nothing to compare, and `dynamodb:Attributes`
only has what a projection names. Both are read from the request here.

A transaction is judged twice. Item by item, as AWS's page on transactions suggests; this is what is enforced. And with all
keys that it uses in one table together, which no page of AWS rules out for these two condition keys; this is only noted. A
transaction that passes one way and not the other might be refused on AWS.
"""

import collections
import contextlib
import contextvars
import json
import re
import threading

from ministack.core import iam_actions, iam_evaluator
from ministack.services import dynamodb

# Where the keys of a request stand in the evaluation's context until they are judged.
PRIVATE = "_rehearsal:requests"
TRANSACTION_ITEMS = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "Get": "dynamodb:GetItem",
}
EXPRESSIONS = ("UpdateExpression", "ConditionExpression", "FilterExpression", "KeyConditionExpression", "ProjectionExpression")
# What stands in expressions and is no attribute.
WORDS = {
    "SET", "ADD", "REMOVE", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN", "ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS",
    "ATTRIBUTE_TYPE", "BEGINS_WITH", "CONTAINS", "SIZE", "IF_NOT_EXISTS", "LIST_APPEND",
}
# IAM knows no action of this name: the right to send one message is the right to send ten in one request.
ACTIONS = {"sqs:SendMessageBatch": "sqs:SendMessage"}
TOKEN = re.compile(r"(?<![\w:.#])(#?[A-Za-z_]\w*)")


class Unreadable(Exception):
    """A request whose keys cannot be told, so that nothing would be judged by them."""


class Asked:
    """What one part of a request names: its partition keys, and its attributes at the top level."""

    def __init__(self, keys, attributes):
        self.keys, self.attributes = keys, attributes

    def __add__(self, other):
        return Asked(merged(self.keys, other.keys), merged(self.attributes, other.attributes))

    def context(self):
        named = {"dynamodb:LeadingKeys": self.keys, "dynamodb:Attributes": self.attributes}
        return {name: values for name, values in named.items() if values}


def merged(first, second):
    return list(dict.fromkeys([*first, *second]))


class Item(str):
    """The ARN of one item's table in a transaction, which remembers what the item asks, and the whole transaction."""

    def __new__(cls, arn, asked, transaction):
        item = super().__new__(cls, arn)
        item.asked, item.transaction = asked, transaction
        return item


def leading(value):
    """A key's value as IAM sees it."""
    if not isinstance(value, dict) or len(value) != 1:
        raise Unreadable(f"a key is no single value: {value}")
    (kind, text), = value.items()
    if kind not in ("S", "N"):
        raise Unreadable(f"a key is of type {kind}")
    return text


def name_of(table):
    return table.rsplit("/", 1)[-1]


def hash_key(table, index=None):
    """The name of the attribute that a table, or one of its indexes, is partitioned by."""
    described = dynamodb._tables.get(name_of(table))
    if described is None:
        raise Unreadable(f"there is no table {table}")
    schema = described["KeySchema"]
    if index:
        found = [one for one in described.get("GlobalSecondaryIndexes") or [] if one["IndexName"] == index]
        if not found:
            raise Unreadable(f"{table} has no index {index}")
        schema = found[0]["KeySchema"]
    return next(key["AttributeName"] for key in schema if key["KeyType"] == "HASH")


def attributes_of(part):
    """The attributes at the top level that a request's key, item and expressions name."""
    names = part.get("ExpressionAttributeNames") or {}
    found = [*(part.get("Key") or {}), *(part.get("Item") or {})]
    for expression in EXPRESSIONS:
        for token in TOKEN.findall(part.get(expression) or ""):
            if token.upper() not in WORDS:
                found.append(names.get(token, token))
    return merged(found, [])


def queried_key(part, wanted):
    """The partition key that a query asks for: the value that `wanted` is compared with."""
    names, values = part.get("ExpressionAttributeNames") or {}, part.get("ExpressionAttributeValues") or {}
    for name, value in re.findall(r"(#?\w+)\s*=\s*(:\w+)", part.get("KeyConditionExpression") or ""):
        if names.get(name, name) == wanted:
            return leading(values[value])
    raise Unreadable(f"a query does not say what {wanted} is: {part.get('KeyConditionExpression')}")


def asked_of_table(part):
    """What a request that names one table asks of it."""
    key = hash_key(part["TableName"], part.get("IndexName"))
    whole = part.get("Key") or part.get("Item")
    if whole is not None:
        keys = [leading(whole[key])]
    elif "KeyConditionExpression" in part:
        keys = [queried_key(part, key)]
    else:
        # A scan, or something about the table itself, names no key, on AWS too.
        keys = []
    return Asked(keys, attributes_of(part))


def asked_of_batch(table, part):
    key = hash_key(table)
    if isinstance(part, dict):
        items = part.get("Keys") or []
        attributes = attributes_of(part)
    else:
        items = [write.get("PutRequest", {}).get("Item") or write["DeleteRequest"]["Key"] for write in part]
        attributes = []
    for item in items:
        attributes = merged(attributes, item)
    return Asked(merged([leading(item[key]) for item in items], []), attributes)


def tables_of(body):
    """Each table that a request names, with what it asks of it. Empty for a transaction, which is read item by item."""
    if body.get("TableName"):
        return {name_of(body["TableName"]): asked_of_table(body)}
    return {name_of(table): asked_of_batch(table, part) for table, part in (body.get("RequestItems") or {}).items()}


# --------------------------------------------------------------------------------------------------------------- the book


class Book:
    """All decisions of the run, counted by what is the same about them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.forget()

    def forget(self):
        """Begins anew: what was decided before was decided by another template."""
        self.decisions = collections.Counter()
        # (role, statement's Sid, action) of whatever allowed something.
        self.used = set()
        self.denied = {}
        self.together = {}
        self.failed = collections.Counter()
        self.unreadable = collections.Counter()

    def note(self, ctx, result):
        role = role_of(ctx.principal_arn)
        with self.lock:
            self.decisions[role] += 1
            if result.decision == "Allow":
                self.used.add((role, result.matched_sid, ctx.action))

    def deny(self, kept, ctx_like):
        """Adds a denial to `kept`, or counts it there."""
        with self.lock:
            key = json.dumps(ctx_like, sort_keys=True)
            kept.setdefault(key, {**ctx_like, "times": 0})["times"] += 1

    def report(self):
        with self.lock:
            return {
                "decisions": dict(self.decisions),
                "used": sorted(self.used),
                "denied": list(self.denied.values()),
                "together": list(self.together.values()),
                "failed": [{"what": what, "times": times} for what, times in self.failed.items()],
                "unreadable": [{"what": what, "times": times} for what, times in self.unreadable.items()],
            }


BOOK = Book()
# Set while the launcher itself asks what would be allowed: such questions are nobody's requests.
_asking = contextvars.ContextVar("rehearsal_asking", default=False)
_last = contextvars.ContextVar("rehearsal_last", default=None)


@contextlib.contextmanager
def asking():
    token = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(token)


def role_of(principal_arn):
    """The role's name in arn:aws:sts::account:assumed-role/ROLE/SESSION."""
    parts = principal_arn.split("/")
    return parts[1] if len(parts) > 2 else principal_arn


def short(keys):
    """Partition keys by their kind: what stands before the first #."""
    return sorted({key.split("#", 1)[0] + "#…" if "#" in key else key for key in keys})


def described(result, action, resource, context):
    asked = {name: context[name] for name in ("dynamodb:LeadingKeys", "dynamodb:Attributes") if name in context}
    told = {"role": role_of(result.principal_arn), "action": action, "resource": plain_resource(resource)}
    if keys := asked.get("dynamodb:LeadingKeys"):
        told["keys"] = short(keys)
    if attributes := asked.get("dynamodb:Attributes"):
        told["attributes"] = sorted(attributes)
    told["decision"] = result.decision
    return told


def plain_resource(resource):
    """A resource without what differs from one request to the next: ids in S3 keys and connections."""
    resource = str(resource)
    if resource.startswith("arn:aws:s3:::") and "/" in resource:
        bucket, key = resource.split("/", 1)
        return f"{bucket}/{key.split('/', 1)[0]}/…" if "/" in key else resource
    return re.sub(r"(@connections/).*", r"\1…", resource)


# -------------------------------------------------------------------------------------------------------- the three hooks


def transaction_checks(original):
    """Each item of a transaction with what it asks: (action, ARN of its table)."""

    def checks(iam_action, body, region, account_id):
        found = original(iam_action, body, region, account_id)
        if not found:
            return found
        items = []
        for item in json.loads(body)["TransactItems"]:
            for member, action in TRANSACTION_ITEMS.items():
                if part := item.get(member):
                    items.append((action, part["TableName"], read(lambda: asked_of_table(part))))
        if len(items) != len(found):
            raise RuntimeError("the emulator checks other items of a transaction than there are")
        whole = {}
        for action, table, asked in items:
            arn = iam_actions._dynamodb_table_arn(table, region, account_id)
            whole.setdefault(arn, []).append((action, asked))
        return [
            (action, Item(iam_actions._dynamodb_table_arn(table, region, account_id), asked, whole if at == 0 else None))
            for at, (action, table, asked) in enumerate(items)
        ]

    return checks


def service_context(original):
    """The condition keys of a request that is no transaction, with what it asks of each table."""

    def context(body):
        keys = original(body)
        try:
            parsed = json.loads(body or b"{}")
        except ValueError:
            return keys
        if isinstance(parsed, dict):
            keys.pop("dynamodb:Attributes", None)
            keys[PRIVATE] = read(lambda: tables_of(parsed)) if not parsed.get("TransactItems") else {}
        return keys

    return context


def read(reading):
    """What a request asks, or, if that cannot be told, a note that fails the run and a key that no policy allows."""
    try:
        return reading()
    except (Unreadable, KeyError, TypeError, ValueError) as error:
        BOOK.unreadable[f"{type(error).__name__}: {error}"] += 1
        return Asked(["unreadable"], ["unreadable"])


def evaluation(original):
    def evaluate(ctx, policies, *limits):
        result = original(ctx, policies, *limits)
        # The role's own policies come first; what the resource's policy says is asked after them.
        if ctx.principal_type == "AssumedRole" and _last.get() is None:
            _last.set((ctx, result))
        return result

    return evaluate


def enforcement(original):
    """What is asked of the evaluator for each request, and what it says."""

    def enforce(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
        iam_action = ACTIONS.get(iam_action, iam_action)
        context = dict(service_context or {})
        private = context.pop(PRIVATE, {})
        asked = None
        if isinstance(resource_arn, Item):
            asked = resource_arn.asked
            if resource_arn.transaction and not _asking.get():
                judge_together(original, access_key_id, region, resource_arn.transaction, context)
        elif isinstance(private, Asked):
            asked = private
        elif service == "dynamodb" and private:
            table = re.search(r":table/([^/]+)", resource_arn)
            asked = private.get(table.group(1)) if table else None
        if asked:
            context.update(asked.context())
        _last.set(None)
        result = original(access_key_id, iam_action, service, region, resource_arn=str(resource_arn), service_context=context)
        if _asking.get():
            return result
        if isinstance(result, iam_evaluator.AuthError):
            BOOK.failed[f"{iam_action} on {plain_resource(resource_arn)}: {result.code}: {result.message}"] += 1
        elif result is not None:
            BOOK.deny(BOOK.denied, described(result, iam_action, resource_arn, context))
        elif last := _last.get():
            BOOK.note(*last)
        return result

    return enforce


def judge_together(enforce, access_key_id, region, transaction, context):
    """Judges each action that a transaction needs of a table with all keys that it uses in that table."""
    for arn, items in transaction.items():
        whole = items[0][1]
        for _, asked in items[1:]:
            whole = whole + asked
        for action in sorted({action for action, _ in items}):
            shared = {**context, **whole.context()}
            with asking():
                result = enforce(access_key_id, action, "dynamodb", region, resource_arn=arn, service_context=shared)
            if isinstance(result, iam_evaluator.EvalResult):
                BOOK.deny(BOOK.together, described(result, action, arn, shared))
