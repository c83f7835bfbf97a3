#!/usr/bin/env python3
"""Deploys a built stage in two steps, with a look in between, and takes the deployment back when an alarm rings.

    .tools/sam/bin/python .github/release.py propose staging
    .tools/sam/bin/python .github/release.py apply staging <change set>

`propose` packages .aws-sam/build, uploads it, and makes a change set: what would change, without changing it. `apply`
executes that change set and nothing newer. Stack name, region, parameters and tags are those of samconfig.toml, all of
them every time: what an earlier deployment was given by hand does not linger.

Why not `sam deploy`, which makes change sets too: it cannot say which alarm CloudFormation should watch. Here the stack
names it itself (its output RollbackAlarm, one alarm over all that say a deployment went wrong), and CloudFormation watches
it during the update and for ten minutes after. The first deployment of a stack has no alarm yet and watches nothing.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid

import boto3
import botocore.exceptions

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
# CloudFormation refuses a change set with more.
MOST_TRIGGERS = 5
# How long the alarms are watched after everything is updated. The slower of them needs five minutes to ring.
WATCH_MINUTES = 10
# An update with its watch takes a quarter of an hour; a table's index may take longer.
PATIENCE_SECONDS = 3600
# What holds money, receipts or keys: replacing or removing one of these is worth a second look.
PRECIOUS = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")


class Failed(Exception):
    """Something that ends the deployment, in words."""


class Stage:
    """A stage as samconfig.toml has it."""

    def __init__(self, name):
        config = tomllib.loads((ROOT / "samconfig.toml").read_text())
        if name not in config:
            raise Failed(f"samconfig.toml knows no stage {name}")
        general = config[name]["global"]["parameters"]
        deploy = config[name]["deploy"]["parameters"]
        self.name = name
        self.stack = general["stack_name"]
        self.region = general["region"]
        self.prefix = deploy["s3_prefix"]
        self.capabilities = deploy["capabilities"].split()
        self.parameters = dict(pair.split("=", 1) for pair in deploy["parameter_overrides"])
        self.tags = dict(pair.split("=", 1) for pair in deploy["tags"])
        self.cloudformation = boto3.client("cloudformation", region_name=self.region)

    def describe(self):
        """The stack, or nothing if there is none yet."""
        try:
            return self.cloudformation.describe_stacks(StackName=self.stack)["Stacks"][0]
        except botocore.exceptions.ClientError as error:
            if "does not exist" in str(error):
                return None
            raise


def outputs(stack):
    return {output["OutputKey"]: output["OutputValue"] for output in (stack or {}).get("Outputs", [])}


def triggers(stack):
    """What CloudFormation is to watch: as the deployed stack names it, because what is not there yet cannot be watched."""
    named = outputs(stack)
    if arn := named.get("RollbackAlarm"):
        return [{"Arn": arn, "Type": "AWS::CloudWatch::CompositeAlarm"}]
    # Stacks of earlier versions name their alarms one by one, and more than may be watched.
    arns = [arn for arn in named.get("RollbackAlarms", "").split(",") if arn]
    return [{"Arn": arn, "Type": "AWS::CloudWatch::Alarm"} for arn in arns[:MOST_TRIGGERS]]


# ------------------------------------------------------------------------------------------------------------- propose


def propose(stage, watch):
    stack = stage.describe()
    # A change set for a stack that does not exist makes one that holds nothing; it is still to be created.
    is_new = stack is None or stack["StackStatus"] == "REVIEW_IN_PROGRESS"
    if not is_new and stack["StackStatus"] == "ROLLBACK_COMPLETE":
        raise Failed(f"{stage.stack} was never made whole and cannot be updated; delete it, and what it left, first")
    alarms = triggers(stack) if watch else []
    name = f"release-{os.environ.get('GITHUB_SHA', 'by-hand')[:12]}-{uuid.uuid4().hex[:8]}"
    made = stage.cloudformation.create_change_set(
        StackName=stage.stack,
        ChangeSetName=name,
        ChangeSetType="CREATE" if is_new else "UPDATE",
        Description=f"{stage.name}, by {os.environ.get('GITHUB_ACTOR', 'hand')}",
        TemplateURL=upload(stage),
        Capabilities=stage.capabilities,
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in stage.parameters.items()],
        Tags=[{"Key": key, "Value": value} for key, value in stage.tags.items()],
        RollbackConfiguration={
            "RollbackTriggers": alarms,
            "MonitoringTimeInMinutes": WATCH_MINUTES if alarms else 0,
        },
    )
    change_set = wait_for_change_set(stage, made["Id"])
    if change_set is None:
        report(f"### {stage.stack}: nothing to change")
        tell_workflow("changeset", "")
        return
    report(summary(stage, stack, change_set, alarms))
    tell_workflow("changeset", made["Id"])


def upload(stage):
    """Puts code and template where CloudFormation reads them, and returns the template's address."""
    if not BUILT.exists():
        raise Failed("nothing is built; run `sam build`")
    with tempfile.TemporaryDirectory() as scratch:
        packaged = pathlib.Path(scratch) / "template.yaml"
        command = [pathlib.Path(sys.executable).parent / "sam", "package", "--template-file", BUILT]
        command += ["--resolve-s3", "--s3-prefix", stage.prefix, "--region", stage.region]
        # Away from the project, so that samconfig.toml is read here and only here.
        command += ["--output-template-file", packaged]
        environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
        subprocess.run(command, check=True, cwd=scratch, env=environment, stdout=sys.stderr)
        bucket = re.search(r"s3://([^/]+)/", packaged.read_text())
        if bucket is None:
            raise Failed("the packaged template names no bucket")
        key = f"{stage.prefix}/{uuid.uuid4().hex}.template"
        s3 = boto3.client("s3", region_name=stage.region)
        s3.upload_file(str(packaged), bucket[1], key)
        return f"https://s3.{stage.region}.amazonaws.com/{bucket[1]}/{key}"


def wait_for_change_set(stage, arn):
    """The change set with all its changes, or nothing if there are none."""
    for _ in range(120):
        change_set = stage.cloudformation.describe_change_set(ChangeSetName=arn)
        if change_set["Status"] in ("CREATE_COMPLETE", "FAILED"):
            break
        time.sleep(2)
    reason = change_set.get("StatusReason", "")
    if change_set["Status"] == "FAILED" and ("didn't contain changes" in reason or "No updates" in reason):
        stage.cloudformation.delete_change_set(ChangeSetName=arn)
        return None
    if change_set["Status"] != "CREATE_COMPLETE":
        raise Failed(f"the change set could not be made: {reason or change_set['Status']}")
    while token := change_set.get("NextToken"):
        page = stage.cloudformation.describe_change_set(ChangeSetName=arn, NextToken=token)
        change_set["Changes"] += page["Changes"]
        change_set["NextToken"] = page.get("NextToken")
    return change_set


def summary(stage, stack, change_set, alarms):
    """What would change, for a person to read."""
    lines = [f"### {stage.stack} ({stage.region}): what would change", ""]
    before = {entry["ParameterKey"]: entry.get("ParameterValue") for entry in (stack or {}).get("Parameters", [])}
    after = {entry["ParameterKey"]: entry.get("ParameterValue") for entry in change_set.get("Parameters", [])}
    settings = [key for key in after if before.get(key) != after[key]]
    if settings:
        lines += ["| Setting | is | would be |", "|---|---|---|"]
        lines += [f"| {key} | {before.get(key) or '-'} | {after[key] or '-'} |" for key in settings] + [""]
    lines += ["| Action | Resource | Type | |", "|---|---|---|---|"]
    for change in change_set["Changes"]:
        change = change["ResourceChange"]
        remark = {"True": "replaced", "Conditional": "perhaps replaced"}.get(change.get("Replacement"), "")
        if change["Action"] == "Remove":
            remark = "removed"
        if remark and change["ResourceType"] in PRECIOUS:
            remark = f":warning: **{remark}: it holds data or keys**"
        lines.append(f"| {change['Action']} | {change['LogicalResourceId']} | {change['ResourceType']} | {remark} |")
    watched = ", ".join(alarm["Arn"].rsplit(":", 1)[-1] for alarm in alarms)
    lines += ["", f"Taken back if one of these rings within {WATCH_MINUTES} minutes: {watched}" if alarms else
              "No alarm is watched: the deployment is only taken back if it fails by itself."]
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------------------- apply


def apply(stage, arn):
    seen = {event["EventId"] for event in events(stage)}
    stage.cloudformation.execute_change_set(ChangeSetName=arn)
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        time.sleep(5)
        for event in reversed(events(stage)):
            if event["EventId"] not in seen:
                seen.add(event["EventId"])
                show(event)
        stack = stage.describe()
        status = stack["StackStatus"]
        if not status.endswith("IN_PROGRESS"):
            break
        if time.monotonic() > give_up:
            raise Failed(f"{stage.stack} is still {status}; it goes on without being watched from here")
    if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        report(f"### {stage.stack}: taken back ({status})\n\nThe events above say why.")
        raise Failed(f"{stage.stack} is {status}")
    lines = [f"### {stage.stack}: {status}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in sorted(outputs(stack).items())]
    report("\n".join(lines))
    tell_workflow("url", outputs(stack).get("ApiUrl", ""))


def events(stage):
    """The stack's latest events, newest first."""
    return stage.cloudformation.describe_stack_events(StackName=stage.stack)["StackEvents"]


def show(event):
    reason = event.get("ResourceStatusReason", "")
    print(f"{event['ResourceStatus']:<32} {event['LogicalResourceId']}  {reason}".rstrip(), flush=True)


# ---------------------------------------------------------------------------------------------------- the workflow's ears


def report(text):
    """For whoever reads the run: on the terminal, and on the run's page."""
    print(text, flush=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a") as page:
            page.write(text + "\n\n")


def tell_workflow(name, value):
    if path := os.environ.get("GITHUB_OUTPUT"):
        with open(path, "a") as page:
            page.write(f"{name}={value}\n")
    else:
        print(f"{name}: {value}")


def main():
    parser = argparse.ArgumentParser(description="Deploys a built stage in two steps.")
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("propose", help="make a change set")
    first.add_argument("stage")
    # For the fix of a stack whose alarms are ringing already: it would be taken back at once.
    first.add_argument("--watch-nothing", action="store_true", help="no rollback on alarm")
    second = steps.add_parser("apply", help="execute a change set")
    second.add_argument("stage")
    second.add_argument("changeset")
    options = parser.parse_args()
    stage = Stage(options.stage)
    if options.step == "propose":
        propose(stage, not options.watch_nothing)
    else:
        apply(stage, options.changeset)


if __name__ == "__main__":
    try:
        main()
    except (Failed, botocore.exceptions.ClientError, subprocess.CalledProcessError) as error:
        sys.exit(f"release: {error}")
