"""What ministack does differently from AWS, put right from outside. Each change names what it replaces, and the launcher ends
at once if that is not there any more: an emulator that silently does something else would make a rehearsal worthless.

`apply` has to be called before the first request, and after the environment is set.
"""

import importlib.metadata
import json
import os
import re
import urllib.parse

import ministack.app as app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import apigateway, cloudwatch, eventbridge, lambda_svc, secretsmanager
from ministack.services.cloudformation import provisioners

import rights

VERSION = "1.5.33"
# So often every schedule fires.
SCHEDULE_SECONDS = 15


class Gone(Exception):
    """What is to be replaced is not there."""


def apply(invoked):
    """Makes every change. `invoked` is told of each invocation of a function."""
    found = importlib.metadata.version("ministack")
    if found != VERSION:
        raise Gone(f"these changes are for ministack {VERSION}, and this is {found}")
    for change in (
        alarms, composite_alarms, buckets, routes, hosts, schedules, secrets, pollers, encrypted, sockets, missing_objects,
    ):
        change()
    permissions()
    invocations(invoked)


def original(place, name):
    """The thing of this name in a module or a table, which has to be there."""
    thing = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
    if thing is None:
        where = getattr(place, "__name__", "the table of resources")
        raise Gone(f"ministack {VERSION} has no {where}.{name} any more")
    return thing


def replace(place, name, make):
    """Replaces what has this name in a module by what `make` makes of it."""
    setattr(place, name, make(original(place, name)))


def replace_handler(kind, name, make):
    """The same for a handler of CloudFormation's resources."""
    handlers = original(provisioners._RESOURCE_HANDLERS, kind)
    handlers[name] = make(original(handlers, name))


def alarms():
    """Alarms on several metrics are refused. They are kept here as alarms on their first metric: nothing rings anyway."""

    def make(record):
        def with_metrics(name, props):
            if props.get("Metrics"):
                stat = next(metric["MetricStat"] for metric in props["Metrics"] if "MetricStat" in metric)
                single = {"MetricName": stat["Metric"]["MetricName"], "Namespace": stat["Metric"]["Namespace"]}
                props = {**props, **single, "Period": stat["Period"], "Statistic": stat["Stat"], "Metrics": None}
            return record(name, props)

        return with_metrics

    replace(provisioners, "_cw_metric_alarm_record", make)


def composite_alarms():
    """CloudFormation does not know alarms over alarms, although CloudWatch has them."""
    kind = "AWS::CloudWatch::CompositeAlarm"
    handlers = provisioners._RESOURCE_HANDLERS
    if kind in handlers:
        raise Gone(f"ministack {VERSION} makes composite alarms itself")
    put, stored = original(cloudwatch, "_put_composite_alarm"), original(cloudwatch, "_composite_alarms")

    def create(_logical_id, props, _stack_name):
        status, _, body = put({}, props, False, is_json=True)
        if status != 200:
            raise ValueError(body)
        return props["AlarmName"], {"Arn": stored[props["AlarmName"]]["AlarmArn"]}

    handlers[kind] = {
        "create": create,
        "update": lambda _physical_id, _old_props, new_props, stack_name: create(None, new_props, stack_name),
        "delete": lambda physical_id, _props: stored.pop(physical_id, None),
    }


def buckets():
    """Whatever changes of a bucket, a change set says that it may be replaced. On AWS only its name does that."""
    kind, replacing = "AWS::S3::Bucket", original(provisioners, "_REPLACING_PROPERTIES")
    if kind in replacing:
        raise Gone(f"ministack {VERSION} knows what replaces a bucket")
    replacing[kind] = ("BucketName",)


def routes():
    """The body of an HTTP API, an OpenAPI document, is ignored, so that the API has no routes."""
    kind = "AWS::ApiGatewayV2::Api"
    add_integration, add_route = original(apigateway, "_create_integration"), original(apigateway, "_create_route")
    all_routes, all_integrations = original(apigateway, "_routes"), original(apigateway, "_integrations")

    def read_body(api, props):
        if not (body := props.get("Body")):
            return
        all_routes[api], all_integrations[api] = {}, {}
        for path, methods in body["paths"].items():
            for method, operation in methods.items():
                integration = operation["x-amazon-apigateway-integration"]
                version = integration["payloadFormatVersion"]
                made = add_integration(api, {"integrationUri": integration["uri"], "payloadFormatVersion": version})
                identity = apigateway.json.loads(made[2])["integrationId"]
                any_method = method == "x-amazon-apigateway-any-method"
                key = "$default" if path == "/$default" else f"{'ANY' if any_method else method.upper()} {path}"
                add_route(api, {"routeKey": key, "target": f"integrations/{identity}"})

    def created(create):
        def with_body(logical_id, props, stack_name):
            made = create(logical_id, props, stack_name)
            read_body(made[0], props)
            return made

        return with_body

    def updated(update):
        def with_body(physical_id, old_props, new_props, stack_name, logical_id=None):
            made = update(physical_id, old_props, new_props, stack_name, logical_id)
            if old_props.get("Body") != new_props.get("Body") or made[0] != physical_id:
                read_body(made[0], new_props)
            return made

        return with_body

    replace_handler(kind, "create", created)
    replace_handler(kind, "update", updated)


def hosts():
    """Events name this machine as the host of an API, and on AWS the region's."""
    replace(apigateway, "_HOST", lambda _here: "us-east-1.amazonaws.com")


def secrets():
    """A reference to a secret is its name there and its ARN on AWS, in environments and policies too."""
    kind = "AWS::SecretsManager::Secret"
    stored = original(secretsmanager, "_secrets")

    def name_of(arn):
        return next((name for name, secret in stored.items() if secret["ARN"] == arn), arn)

    def created(create):
        def by_arn(logical_id, props, stack_name):
            _, attributes = create(logical_id, props, stack_name)
            return attributes["Arn"], attributes

        return by_arn

    def updated(update):
        def by_arn(physical_id, old_props, new_props, stack_name, logical_id=None):
            made = update(name_of(physical_id), old_props, new_props, stack_name, logical_id)
            return made[1]["Arn"], made[1]

        return by_arn

    def deleted(delete):
        return lambda physical_id, props: delete(name_of(physical_id), props)

    for name, make in (("create", created), ("update", updated), ("delete", deleted)):
        replace_handler(kind, name, make)


def pollers():
    """A number that comes from a parameter stays text, and one such mapping ends the poller for all queues."""
    kind = "AWS::Lambda::EventSourceMapping"

    def numbers(props):
        scaling = props.get("ScalingConfig")
        if not scaling:
            return props
        return {**props, "ScalingConfig": {name: int(value) for name, value in scaling.items()}}

    replace_handler(kind, "create", lambda create: lambda logical_id, props, stack: create(logical_id, numbers(props), stack))
    replace_handler(
        kind, "update",
        lambda update: lambda physical_id, old, new, stack: update(physical_id, numbers(old), numbers(new), stack),
    )


def schedules():
    """A rehearsal does not wait a minute for what is done every minute, nor a day for what is done once a day."""
    replace(eventbridge, "_parse_rate_seconds", lambda parse: lambda text: parse(text) and SCHEDULE_SECONDS)
    replace(eventbridge, "_SCHEDULER_TICK_INTERVAL", lambda _: 3)


def encrypted():
    """Everything here goes over plain HTTP, which the bucket's policy refuses. AWS is asked over TLS."""
    replace(app, "pin_request_origin", lambda pin: lambda address, _secure: pin(address, True))


def sockets():
    """Functions are told the address of the WebSocket API at AWS, where this machine does not reach it."""

    def make(environment):
        def reachable(config, code_dir, port):
            made = environment(config, code_dir, port)
            if endpoint := made.get("SOCKET_ENDPOINT"):
                url = urllib.parse.urlsplit(endpoint)
                api = re.fullmatch(r"(\w+)\.execute-api\..*", url.hostname or "")
                if url.scheme != "https" or not api:
                    raise RuntimeError(f"SOCKET_ENDPOINT is no address of an API: {endpoint}")
                made["SOCKET_ENDPOINT"] = f"{made['AWS_ENDPOINT_URL']}/_aws/execute-api/{api.group(1)}{url.path}"
            # Vendors whose address the template does not name.
            return made | json.loads(os.environ.get("REHEARSAL_VARIABLES", "{}"))

        return reachable

    replace(lambda_svc, "_provided_worker_env", make)
    # Asked for by name when a process is started, so that the change above is seen.
    original(lambda_runtime, "ProvidedWorker")


def missing_objects():
    """An object that is not there is 404 only for those who may list the bucket, and 403 for everybody else."""
    key_of, region_of = original(app, "extract_access_key_id"), original(app, "extract_region")

    def make(dispatch):
        async def as_s3(method, path, headers, body, query_params, request_id):
            answer = await dispatch(method, path, headers, body, query_params, request_id)
            content = answer[2] if isinstance(answer[2], bytes) else b""
            if answer[0] != 404 or method not in ("GET", "HEAD") or b"NoSuchKey" not in content:
                return answer
            bucket = path.lstrip("/").split("/", 1)[0]
            caller = key_of(headers, query_params)
            with rights.asking():
                denied = iam_evaluator.enforce(
                    caller, "s3:ListBucket", "s3", region_of(headers, query_params), resource_arn=f"arn:aws:s3:::{bucket}"
                )
            if not denied:
                return answer
            told = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            return 403, {"Content-Type": "application/xml"}, told

        return as_s3

    replace(app, "_dispatch_service_request", make)


def permissions():
    """Condition keys of DynamoDB as AWS sets them, and a record of every decision."""
    replace(iam_actions, "dynamodb_transaction_checks", rights.transaction_checks)
    replace(iam_actions, "dynamodb_service_context", rights.service_context)
    replace(iam_evaluator, "evaluate", rights.evaluation)
    replace(iam_evaluator, "enforce", rights.enforcement)


def invocations(invoked):
    """Every invocation is told of: the function's configuration, the event, and what came of it."""

    def make(execute):
        def told(func, config, event, request_id, started):
            return invoked(config, event, execute(func, config, event, request_id, started))

        return told

    replace(lambda_svc, "_execute_function_dispatch", make)
