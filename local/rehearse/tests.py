"""What the rehearsal is built on: which keys a request names, how a transaction is judged, what makes a run fail.

    local/rehearse.sh test                                    all of it
    .tools/ministack/bin/python local/rehearse/tests.py       what needs no functions
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from ministack.core.iam_evaluator import EvalContext, EvalResult, evaluate, parse_policy_document
from ministack.services import dynamodb

import judge
import patches
import rights
from stack import ROOT, Failed, parsed, without

REGION, ACCOUNT = "us-east-1", "000000000000"
ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/t-agents"
ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/r/s"
# Where cargo puts debug builds, if there are any.
TARGET = os.environ.get("REHEARSAL_TARGET")


def key(pk, sk="X"):
    return {"pk": {"S": pk}, "sk": {"S": sk}}


class Keys(unittest.TestCase):
    """The partition keys and attributes that IAM would be told of."""

    def setUp(self):
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        index = {"IndexName": "inbox", "KeySchema": [{"AttributeName": "inbox", "KeyType": "HASH"}]}
        dynamodb._tables["t-agents"] = {"KeySchema": schema, "GlobalSecondaryIndexes": [index]}
        dynamodb._tables["t-jobs"] = {"KeySchema": schema}
        rights.BOOK = rights.Book()

    def asked(self, table="t-agents", **body):
        context = rights.service_context(lambda _body: {})(json.dumps(body).encode())
        return context[rights.PRIVATE][table]

    def test_single_items_name_their_key_and_what_their_expressions_touch(self):
        update = self.asked(
            TableName="t-agents", Key=key("RATE#a"),
            UpdateExpression="ADD #used :one SET #expires = if_not_exists(#expires, :at)",
            ConditionExpression="attribute_not_exists(#used) OR #used < :limit",
            ExpressionAttributeNames={"#used": "used", "#expires": "expires"},
        )
        self.assertEqual(update.keys, ["RATE#a"])
        self.assertEqual(set(update.attributes), {"pk", "sk", "used", "expires"})
        item = {**key("JOB#1"), "state": {"M": {}}}
        put = self.asked(TableName=ARN.replace("t-agents", "t-jobs"), table="t-jobs", Item=item)
        self.assertEqual((put.keys, put.attributes), (["JOB#1"], ["pk", "sk", "state"]))
        names = {"#n": "notes"}
        projection = {"ProjectionExpression": "lease.until, #n[0].x", "ExpressionAttributeNames": names}
        nested = self.asked(TableName="t-agents", Key=key("A"), **projection)
        self.assertEqual(nested.attributes, ["pk", "sk", "lease", "notes"])

    def test_a_query_names_the_partition_of_the_table_or_of_the_index(self):
        values = {":pk": {"S": "AGENT#1"}, ":sk": {"S": "TOKEN#"}, ":inbox": {"S": "AGENT#2"}}
        names = {"#pk": "pk", "#sk": "sk", "#inbox": "inbox"}
        more = {"TableName": "t-agents", "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
        query = self.asked(KeyConditionExpression="#pk = :pk AND begins_with(#sk, :sk)", **more)
        self.assertEqual(query.keys, ["AGENT#1"])
        query = self.asked(KeyConditionExpression="#inbox = :inbox", IndexName="inbox", **more)
        self.assertEqual(query.keys, ["AGENT#2"])

    def test_a_batch_names_the_keys_of_each_table(self):
        jobs = {ARN.replace("t-agents", "t-jobs"): {"Keys": [key("J")]}}
        items = {"t-agents": {"Keys": [key("A"), key("B"), key("A", "Y")]}, **jobs}
        self.assertEqual(self.asked(RequestItems=items).keys, ["A", "B"])
        self.assertEqual(self.asked(RequestItems=items, table="t-jobs").keys, ["J"])
        writes = [{"PutRequest": {"Item": {**key("A"), "text": {"S": ""}}}}, {"DeleteRequest": {"Key": key("B")}}]
        self.assertEqual(self.asked(RequestItems={"t-agents": writes}).keys, ["A", "B"])

    def test_a_request_whose_key_is_unknown_is_denied_and_told(self):
        body = json.dumps({"TableName": "t-other", "Key": key("A")}).encode()
        context = rights.service_context(lambda _body: {})(body)
        self.assertEqual(context[rights.PRIVATE].keys, ["unreadable"])
        self.assertEqual(len(rights.BOOK.report()["unreadable"]), 1)

    def transaction(self, *parts):
        found = [(action, ARN) for part in parts for member, action in rights.TRANSACTION_ITEMS.items() if member in part]
        checks = rights.transaction_checks(lambda *_: found)
        return checks("dynamodb:TransactWriteItems", json.dumps({"TransactItems": parts}).encode(), REGION, ACCOUNT)

    def decide(self, policy):
        """Enforces a policy as the emulator does, with its evaluator."""
        statements = [parse_policy_document({"Statement": policy})]

        def enforce(_access_key, action, _service, region, resource_arn="*", service_context=None):
            context = {name.lower(): value for name, value in service_context.items()}
            ctx = EvalContext(ROLE, "AssumedRole", ACCOUNT, action, resource_arn, region, service_context=context)
            result = evaluate(ctx, statements)
            return None if result.decision == "Allow" else result

        return rights.enforcement(enforce)

    def test_a_transaction_is_judged_by_item_and_with_all_its_keys_together(self):
        def allowing(*prefixes):
            like = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(prefixes)}}
            return {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": ARN, "Condition": like}

        def updating(name):
            return {"Update": {"TableName": "t-agents", "Key": key(name), "UpdateExpression": "SET a = :a"}}


        def judged(policy):
            rights.BOOK = rights.Book()
            enforce = self.decide(policy)
            denied = [
                bool(enforce("key", action, "dynamodb", REGION, resource_arn=item, service_context={}))
                for action, item in self.transaction(updating("RATE#1"), updating("AGENT#1"))
            ]
            return denied, len(rights.BOOK.report()["denied"]), len(rights.BOOK.report()["together"])

        self.assertEqual(judged([allowing("RATE#*", "AGENT#*")]), ([False, False], 0, 0))
        self.assertEqual(judged([allowing("RATE#*"), allowing("AGENT#*")]), ([False, False], 0, 1), "two statements")
        self.assertEqual(judged([allowing("RATE#*")]), ([False, True], 1, 1), "one is missing")

    def test_a_batch_of_messages_needs_the_right_to_send_one(self):
        rights.BOOK = rights.Book()
        asked = []
        rights.enforcement(lambda _key, action, *_arguments, **_more: asked.append(action))(
            "key", "sqs:SendMessageBatch", "sqs", REGION)
        self.assertEqual(asked, ["sqs:SendMessage"])

    def test_what_is_used_is_the_roles_own_statement(self):
        rights.BOOK = rights.Book()
        own = EvalResult("Allow", matched_sid="Own")
        ctx = EvalContext(ROLE, "AssumedRole", ACCOUNT, "sqs:SendMessage", "*", REGION)

        def enforce(*_arguments, **_more):
            # First the identity's policies, then the resource's, which has none.
            note = rights.evaluation(lambda _ctx, result: result)
            note(ctx, own)
            note(ctx, EvalResult("ImplicitDeny"))
            return None

        rights.enforcement(enforce)("key", "sqs:SendMessage", "sqs", REGION)
        self.assertEqual(rights.BOOK.report()["used"], [("r", "Own", "sqs:SendMessage")])


class Patches(unittest.TestCase):
    def test_what_is_gone_ends_the_launcher(self):
        for place, name in ((dynamodb, "no_such_function"), ({"create": None}, "create"), ({}, "update")):
            with self.assertRaises(patches.Gone):
                patches.original(place, name)

    def test_the_version_is_the_one_that_is_installed(self):
        install = (ROOT / "local/sam/install.sh").read_text()
        self.assertIn(f"ministack=={patches.VERSION} ", install)


class Template(unittest.TestCase):
    def test_one_statement_is_left_out_and_no_other(self):
        template = (ROOT / "template.yaml").read_text()
        bare = without(template, ["RequestsRole/Jobs"])

        def statements(of):
            return parsed(of)["Resources"]["RequestsRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]

        self.assertEqual([one for one in statements(template) if one.get("Sid") != "Jobs"], statements(bare))
        self.assertEqual(template.count("- Sid: ") - bare.count("- Sid: "), 1)
        with self.assertRaises(Failed):
            without(template, ["RequestsRole/Nothing"])


class Verdict(unittest.TestCase):
    def test_each_finding_fails_the_run(self):
        denial = {"role": "rehearsal-SoulsRole-4A", "action": "dynamodb:GetItem", "resource": ARN, "times": 2}
        good = {
            "rights": {"decisions": {}, "denied": [], "together": [], "failed": [], "unreadable": []}, "quotas": [],
            "services": {"asked": 1, "lacking": []}, "invocations": {"invocations": [], "errors": [], "routes": []},
        }
        self.assertEqual(judge.failures(good, "rehearsal"), [])
        error = {"function": "f", "trigger": "queue", "route": None, "error": {}, "log": ""}
        for part, name, finding in (
            ("rights", "denied", denial), ("rights", "together", denial), ("rights", "failed", {"what": "x", "times": 1}),
            ("rights", "unreadable", {"what": "x", "times": 1}), ("services", "lacking", "x"),
            ("invocations", "errors", error), ("invocations", "routes", ["f", "GET /", 500, 1]),
        ):
            report = json.loads(json.dumps(good))
            report[part][name].append(finding)
            told = judge.failures(report, "rehearsal")
            self.assertEqual(len(told), 1, name)
            if finding is denial:
                self.assertIn("SoulsRole has no statement for Action: dynamodb:GetItem", told[0])
        self.assertEqual(len(judge.failures({**good, "quotas": ["x"]}, "rehearsal")), 1)


@unittest.skipUnless(TARGET, "the functions are not built")
class Rehearsal(unittest.TestCase):
    """The whole of it, with a mistake in the template."""

    def test_a_missing_statement_fails_it(self):
        run = [sys.executable, pathlib.Path(__file__).with_name("run.py"), "--target", TARGET, "--folder", "rehearsal-test"]
        run += ["--only", "lookup", "--without", "RequestsRole/Jobs"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("denied: RequestsRole has no statement for Action: dynamodb:", done.stderr)
        self.assertIn("table/rehearsal-jobs", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
