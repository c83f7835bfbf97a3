"""Deploys a template as `sam deploy` does: the functions' archives into a bucket, a change set, and its execution."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
import zipfile

import boto3
import botocore.config
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGION = "us-east-1"
CODE_BUCKET = "rehearsal-code"
# Added to settings.json; the journey `prices` looks for it.
SETTINGS = {"PRICES": {"place_elevation": "0.0123"}}
# What a change of a stack may not replace: data, and the keys of money.
KEPT = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[os.uname().machine]


class Failed(Exception):
    """Something that ends the rehearsal, in words."""


class Loader(yaml.SafeLoader):
    """Reads a template's short forms (!Ref, !Sub) without making anything of them."""


Loader.add_multi_constructor("!", lambda loader, suffix, node: {f"!{suffix}": scalar_or_more(loader, node)})


def scalar_or_more(loader, node):
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


def parsed(template):
    return yaml.load(template, Loader)


def clients(endpoint):
    """Makes clients of the emulator's services, as the account's root."""
    settings = botocore.config.Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=120)

    def client(service):
        return boto3.client(
            service, endpoint_url=endpoint, region_name=REGION, config=settings,
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    return client


# ------------------------------------------------------------------------------------------------------------- packaging


def package(binaries, folder):
    """An archive of each program, stripped, with the settings, as Lambda wants it. Those that did not change since the last
    run are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = json.dumps(json.loads((ROOT / "settings.json").read_text()) | SETTINGS)
    version = hashlib.sha256(settings.encode()).hexdigest()[:8]

    def one(binary):
        about = binary.stat()
        archive = folder / f"{binary.name}-{about.st_size}-{about.st_mtime_ns}-{version}.zip"
        if not archive.exists():
            for old in folder.glob(f"{binary.name}-*.zip"):
                old.unlink()
            bare = folder / f"{binary.name}.bare"
            subprocess.run(["strip", "-o", bare, binary], check=True)
            unfinished = archive.with_suffix(".part")
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
                made.write(bare, "bootstrap")
                made.writestr("settings.json", settings)
            bare.unlink()
            unfinished.rename(archive)
        return binary.name, archive

    # Compression leaves Python's lock alone, so that this uses all processors.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(one, binaries))


# ------------------------------------------------------------------------------------------------------------ deployment


class Deployment:
    """One stack, and what it is deployed from."""

    def __init__(self, client, name, archives):
        self.client, self.name, self.archives = client, name, archives
        self.cloudformation = client("cloudformation")

    def upload(self):
        """Puts the archives where the templates find them. Once is enough for all of them."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=CODE_BUCKET)
        for archive in self.archives.values():
            s3.put_object(Bucket=CODE_BUCKET, Key=archive.name, Body=archive.read_bytes())

    def with_code(self, template):
        """The template as it is, but for where its functions' code is, as `sam package` writes it."""

        def place(match):
            archive = self.archives.get(match.group(2))
            if archive is None:
                # A function of an older template that is not built any more: only its name and its role count.
                archive = next(iter(self.archives.values()))
            return f"{match.group(1)}s3://{CODE_BUCKET}/{archive.name}"

        packaged, count = re.subn(r"(?m)^( +CodeUri: )functions/(\S+)$", place, template)
        if not count:
            raise Failed("the template names no code of functions in functions/")
        return packaged

    def deploy(self, template, parameters, kind):
        """Makes and executes a change set (CREATE or UPDATE), and waits until it is through. Returns what it changed."""
        declared = parsed(template)["Parameters"]
        packaged = self.with_code(template)
        digest = hashlib.sha256(packaged.encode()).hexdigest()[:16]
        key = f"{self.name}-{digest}.template"
        self.client("s3").put_object(Bucket=CODE_BUCKET, Key=key, Body=packaged.encode())
        change_set = f"rehearsal-{time.time_ns()}"
        self.cloudformation.create_change_set(
            StackName=self.name, ChangeSetName=change_set, ChangeSetType=kind, Capabilities=["CAPABILITY_IAM"],
            TemplateURL=f"{self.client('s3').meta.endpoint_url}/{CODE_BUCKET}/{key}",
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items() if name in declared
            ],
        )
        made = self.wait_for_change_set(change_set)
        changes = [change["ResourceChange"] for change in made["Changes"]]
        self.refuse_replacements(changes)
        self.cloudformation.execute_change_set(StackName=self.name, ChangeSetName=change_set)
        self.wait_until_complete()
        return changes

    def wait_for_change_set(self, change_set):
        for _ in range(600):
            made = self.cloudformation.describe_change_set(StackName=self.name, ChangeSetName=change_set)
            if made["Status"] == "CREATE_COMPLETE":
                while "NextToken" in made:
                    more = self.cloudformation.describe_change_set(
                        StackName=self.name, ChangeSetName=change_set, NextToken=made.pop("NextToken"))
                    made["Changes"] += more["Changes"]
                    if "NextToken" in more:
                        made["NextToken"] = more["NextToken"]
                return made
            if made["Status"] == "FAILED":
                raise Failed(f"the change set failed: {made.get('StatusReason')}")
            time.sleep(0.1)
        raise Failed("the change set is not made")

    def refuse_replacements(self, changes):
        def loses(change):
            return change["Action"] == "Remove" or change.get("Replacement") in ("True", "Conditional")

        lost = [change["LogicalResourceId"] for change in changes if change["ResourceType"] in KEPT and loses(change)]
        if lost:
            raise Failed(f"this change would replace or remove what holds data or keys: {', '.join(lost)}")

    def wait_until_complete(self):
        for _ in range(1200):
            stack = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]
            status = stack["StackStatus"]
            if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                return
            if not status.endswith("_IN_PROGRESS") or "ROLLBACK" in status:
                raise Failed(f"the stack is {status}: {self.why()}")
            time.sleep(0.1)
        raise Failed(f"the stack is still {status}")

    def why(self):
        events = self.cloudformation.describe_stack_events(StackName=self.name)["StackEvents"]
        told = [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in events if event["ResourceStatus"].endswith("FAILED") and event.get("ResourceStatusReason")
        ]
        return "; ".join(reversed(told)) or "it does not say why"

    def resources(self):
        """What the stack is made of: logical id to type and physical id."""
        found = {}
        for page in self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=self.name):
            for one in page["StackResourceSummaries"]:
                found[one["LogicalResourceId"]] = (one["ResourceType"], one["PhysicalResourceId"])
        return found

    def outputs(self):
        stack = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def without(template, sids):
    """The template without some statements, each named as Role/Sid: what a mistake in it would look like."""
    for named in sids:
        role, _, sid = named.partition("/")
        pattern = rf"(?ms)(^  {re.escape(role)}:\n.*?)(^ +- Sid: {re.escape(sid)}\n.*?)(?=^ +- Sid: |^ +#|^\n)"
        template, count = re.subn(pattern, r"\1", template, count=1)
        if not count:
            raise Failed(f"the template has no statement {named}")
    return template
