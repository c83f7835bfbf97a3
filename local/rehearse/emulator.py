"""Runs ministack as AWS would behave (patches.py), with IAM enforced for the functions' roles (rights.py), on two ports:

    emulator.py AWS_PORT GATEWAY_PORT

The first is AWS: what the functions and the rehearsal itself call. The second is what agents call: the distribution's one
origin for the HTTP API and the WebSockets. Which stack it leads to, and what the run has found, is asked under /_rehearsal/
of the first. Started by run.py, with the environment that ministack is told its settings by.
"""

import asyncio
import base64
import collections
import json
import os
import re
import signal
import sys
import threading
import urllib.parse

import hypercorn.asyncio
import hypercorn.config
import ministack.app as app
from ministack.core import iam_evaluator, lambda_runtime, responses
from ministack.services import apigateway, cloudfront, eventbridge, iam, lambda_svc

import patches
import rights

# What API Gateway and Lambda take and give, in bytes.
GATEWAY_BODY = 10 * 1024 * 1024
LAMBDA_PAYLOAD = 6 * 1024 * 1024
ENVIRONMENT = 4096
INLINE_POLICIES = 10240


# -------------------------------------------------------------------------------------------------------- what was invoked


class Invocations:
    """How often each function was invoked by what, and what went wrong."""

    def __init__(self):
        self.lock = threading.Lock()
        self.forget()

    def forget(self):
        self.counts = collections.Counter()
        self.errors = []
        self.routes = collections.Counter()

    def told(self, config, event, result):
        name = config["FunctionName"]
        trigger, route = trigger_of(event)
        answer = json.dumps(result.get("body"), ensure_ascii=False).encode() if isinstance(result, dict) else b""
        if len(answer) > LAMBDA_PAYLOAD:
            message = f"Response payload size exceeded maximum allowed payload size ({LAMBDA_PAYLOAD} bytes): {len(answer)}"
            result = {"error": True, "body": {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}}
        with self.lock:
            self.counts[name, trigger] += 1
            if result.get("error"):
                self.errors.append({"function": name, "trigger": trigger, "route": route, "error": result.get("body"),
                                    "log": (result.get("log") or "")[-2000:]})
            if route:
                status = result["body"].get("statusCode", 200) if isinstance(result.get("body"), dict) else 0
                self.routes[name, route, status] += 1
        return result

    def report(self):
        with self.lock:
            return {
                "invocations": [[name, trigger, count] for (name, trigger), count in sorted(self.counts.items())],
                "errors": list(self.errors),
                "routes": [[name, route, status, count] for (name, route, status), count in sorted(self.routes.items())],
            }


def trigger_of(event):
    """What an event says of where it comes from, and the route of a request."""
    context = event.get("requestContext") or {} if isinstance(event, dict) else {}
    if "http" in context:
        return "HTTP", event["routeKey"]
    if "connectionId" in context:
        return "WebSocket", context["routeKey"]
    if isinstance(event, dict) and (records := event.get("Records")):
        return {"aws:sqs": "queue", "aws:dynamodb": "stream"}.get(records[0].get("eventSource"), "records"), None
    if isinstance(event, dict) and event.get("source") == "aws.events":
        return "schedule", None
    return "directly", None


INVOCATIONS = Invocations()


# ------------------------------------------------------------------------------------------------------- the distribution


class Front:
    """The one origin of a stack: its distribution's behaviours, without what CloudFront does at its edge."""

    def __init__(self):
        self.distribution = None

    def lead_to(self, api):
        parsed = map(cloudfront.parse_distribution_dataplane_config, list(cloudfront._distributions.values()))
        [self.distribution] = [one for one in parsed if one["origins"]["api"]["domain_name"].startswith(f"{api}.")]

    def origin_of(self, path):
        """The API that a path leads to, and the headers that the distribution adds."""
        behavior = cloudfront._match_behavior(self.distribution, path)
        origin = self.distribution["origins"][behavior["target_origin_id"]]
        return origin["domain_name"].split(".", 1)[0], dict(origin["custom_headers"])


FRONT = Front()


class Preflight(str):
    """The method of a request that is to be routed like any other: the emulator answers OPTIONS by itself, as AWS does only
    for an API that has a configuration for CORS."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return True


async def whole_body(receive):
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def gateway(scope, receive, send):
    """A request of an agent, as the distribution passes it on and the API answers it."""
    headers = {}
    for name, value in scope["headers"]:
        name, value = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    path = scope["path"]
    api, added = FRONT.origin_of(path)
    # The distribution's function says who asked, whatever the request said.
    headers["x-edge-viewer"] = scope["client"][0]
    headers.update({name.lower(): value for name, value in added.items()})
    if scope["type"] == "websocket":
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        return await apigateway.handle_websocket({**scope, "headers": raw}, receive, send, api, path_override="/live")

    # The distribution asks the API by its own name, whatever name it was asked by.
    headers["host"] = f"{api}.execute-api.{apigateway._HOST}"
    body = await whole_body(receive)
    if body is None:
        return None
    method = Preflight(scope["method"]) if scope["method"] == "OPTIONS" else scope["method"]
    query = scope["query_string"].decode("latin-1")
    if len(body) > GATEWAY_BODY or lambda_event_size(body, headers) > LAMBDA_PAYLOAD:
        status, told, content = 413, {"content-type": "application/json"}, b'{"message":"Request Entity Too Large"}'
    else:
        parameters = urllib.parse.parse_qs(query, keep_blank_values=True)
        raw_path = apigateway.decode_http_api_path(scope["raw_path"].decode("latin-1"))
        status, told, content = await apigateway.handle_execute(
            api, "$default", raw_path, method, headers, body, parameters, raw_query_string=query
        )
    content = content if isinstance(content, bytes) else content.encode()
    await app._send_response(send, status, told, b"" if method == "HEAD" else content)


def lambda_event_size(body, headers):
    """About the size of the event that a body makes: text as a JSON string, everything else as base64."""
    if apigateway._v2_request_body_is_text(headers.get("content-type")):
        return len(json.dumps(body.decode("utf-8", "replace"), ensure_ascii=False).encode())
    return len(base64.b64encode(body))


# ------------------------------------------------------------------------------------- rights that no request here asks for


def judged(role, action, resource, **keys):
    """What the role's policies say of a request that AWS would make with it, and which statement allows it."""
    policies = iam_evaluator._gather_role_policies(role, responses.get_account_id())
    ctx = iam_evaluator.EvalContext(
        principal_arn=f"arn:aws:sts::{responses.get_account_id()}:assumed-role/{role}/service", principal_type="AssumedRole",
        principal_account=responses.get_account_id(), action=action, resource_arn=resource, region=responses.get_region(),
        secure_transport=True, service_context=keys,
    )
    with rights.asking():
        result = iam_evaluator.evaluate(ctx, policies)
    if result.decision == "Allow":
        rights.BOOK.used.add((role, result.matched_sid, action))
    return result.decision == "Allow"


def service_rights(stack, apis):
    """What Lambda does with the functions' roles, and what other services do with the functions: who lacks which right."""
    lacking, asked = [], 0
    functions = {
        name: record["config"] for name, record in lambda_svc._functions.items() if name.startswith(f"{stack}-")
    }
    roles = {name: config["Role"].rsplit("/", 1)[-1] for name, config in functions.items()}
    account, region = responses.get_account_id(), responses.get_region()

    def need(name, action, resource):
        nonlocal asked
        asked += 1
        if not judged(roles[name], action, resource):
            lacking.append(f"{name}: Lambda may not {action} on {resource} with the role {roles[name]}")

    for mapping in list(lambda_svc._esms.values()):
        name = mapping["FunctionName"]
        if name not in functions:
            continue
        source = mapping["EventSourceArn"]
        if ":sqs:" in source:
            for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"):
                need(name, f"sqs:{action}", source)
        else:
            for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"):
                need(name, f"dynamodb:{action}", source)
        destination = ((mapping.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination")
        if destination:
            need(name, "sqs:SendMessage", destination)
    for name, config in functions.items():
        group = config["LoggingConfig"]["LogGroup"]
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            need(name, action, f"arn:aws:logs:{region}:{account}:log-group:{group}:log-stream:2026/11/22/[$LATEST]x")
    asked += invoking_rights(stack, apis, lacking)
    return {"asked": asked, "lacking": lacking}


def invoking_rights(stack, apis, lacking):
    """Whether API Gateway may invoke each function for each of its routes, and the scheduler for each rule."""
    account, region = responses.get_account_id(), responses.get_region()
    asked = 0

    def need(service, function_arn, source, what):
        nonlocal asked
        asked += 1
        name = function_arn.split(":function:")[1].split(":")[0]
        ctx = iam_evaluator.EvalContext(
            principal_arn=f"arn:aws:iam::{account}:service/{service}", principal_type="AWSService", principal_account=account,
            action="lambda:InvokeFunction", resource_arn=function_arn, region=region,
            service_context={"aws:sourcearn": source, "aws:sourceaccount": account},
        )
        policy = lambda_svc.function_policy_for_arn(function_arn)
        with rights.asking():
            result = iam_evaluator.evaluate_resource_policy(policy[0] if policy else None, ctx, service=service)
        if result.decision != "Allow":
            lacking.append(f"{name}: {service} may not invoke it for {what} ({source})")

    for api in apis:
        stage = "live" if apigateway._apis[api]["protocolType"] == "WEBSOCKET" else "$default"
        for route in apigateway._routes[api].values():
            integration = apigateway._integrations[api][route["target"].rsplit("/", 1)[-1]]
            function = re.search(r"functions/(arn:aws:lambda:[^/]+)/invocations", integration["integrationUri"])
            # API Gateway names the route as it is written, with a * for each part that varies.
            key = route["routeKey"]
            where = key if " " not in key else key.replace(" ", "", 1).replace("ANY/", "*/", 1)
            where = re.sub(r"\{[^}]*\}", "*", where)
            source = f"arn:aws:execute-api:{region}:{account}:{api}/{stage}/{where}"
            need("apigateway.amazonaws.com", function.group(1), source, key)
    for (_, _, key), targets in list(eventbridge._targets._data.items()):
        for target in targets:
            if ":function:" in target["Arn"] and target["Arn"].split(":function:")[1].startswith(f"{stack}-"):
                rule = eventbridge._rules.get(key)
                need("events.amazonaws.com", target["Arn"], rule["Arn"], f"the schedule {rule['ScheduleExpression']}")
    return asked


def quotas(stack):
    """What AWS would refuse to deploy, and the emulator takes."""
    beyond = []
    for name, record in lambda_svc._functions.items():
        if name.startswith(f"{stack}-"):
            variables = (record["config"].get("Environment") or {}).get("Variables") or {}
            size = sum(len(key.encode()) + len(str(value).encode()) for key, value in variables.items())
            if size > ENVIRONMENT:
                beyond.append(f"the variables of {name} take {size} bytes, and Lambda {ENVIRONMENT}")
    for name in list(iam._roles):
        if name.startswith(f"{stack}-"):
            policies = iam._roles[name].get("InlinePolicies") or {}
            texts = [text if isinstance(text, str) else json.dumps(text) for text in policies.values()]
            size = sum(len(re.sub(r"\s", "", text)) for text in texts)
            if size > INLINE_POLICIES:
                beyond.append(f"the policies of {name} take {size} characters, and IAM {INLINE_POLICIES}")
    return beyond


def unused(stack):
    """Actions of the roles' statements that nothing asked for in this run."""
    used = {(role, sid, action) for role, sid, action in rights.BOOK.used}
    found = []
    for role in sorted(iam._roles):
        if role.startswith(f"{stack}-"):
            for statements in iam_evaluator._gather_role_policies(role, responses.get_account_id()):
                for statement in statements:
                    for action in statement.actions:
                        if statement.effect == "Allow" and (role, statement.sid, action) not in used:
                            found.append([role, statement.sid, action])
    return found


# --------------------------------------------------------------------------------------------------------- the application


async def control(scope, receive, send):
    await whole_body(receive)
    query = dict(urllib.parse.parse_qsl(scope["query_string"].decode()))
    try:
        match scope["path"].rsplit("/", 1)[-1]:
            case "begin":
                FRONT.lead_to(query["api"])
                # Every function starts anew, with the permissions and the secrets as they are now.
                await asyncio.to_thread(lambda_runtime.reset)
                await asyncio.sleep(0.5)
                rights.BOOK.forget()
                INVOCATIONS.forget()
                answer = {}
            case "report":
                stack, apis = query["stack"], query["apis"].split(",")
                answer = {
                    "rights": rights.BOOK.report(), "invocations": INVOCATIONS.report(),
                    "services": service_rights(stack, apis), "quotas": quotas(stack), "unused": unused(stack), "routes": [
                        route["routeKey"] for api in apis for route in apigateway._routes[api].values()],
                }
            case "ready":
                answer = {}
            case other:
                raise LookupError(f"there is no {other}")
        status = 200
    except Exception as error:  # whoever asks is told, and the run ends with it
        app.logger.exception("a question of the rehearsal")
        status, answer = 500, {"error": f"{type(error).__name__}: {error}"}
    await app._send_response(send, status, {"content-type": "application/json"}, json.dumps(answer, default=str).encode())


def application(gateway_port):
    async def serve(scope, receive, send):
        if scope["type"] != "lifespan" and scope["server"][1] == gateway_port:
            return await gateway(scope, receive, send)
        if scope["type"] == "http" and scope["path"].startswith("/_rehearsal/"):
            return await control(scope, receive, send)
        return await app.app(scope, receive, send)

    return serve


def end_with_parent():
    """Ends this process and the functions that it runs when whoever started it is gone, by whatever end."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


# What is used of the emulator beside what patches.py replaces: missed at the start, and not in the middle of a journey.
USED = (
    (apigateway, "_apis", "_integrations", "_routes", "_v2_request_body_is_text", "decode_http_api_path", "handle_execute",
     "handle_websocket"),
    (app, "_send_response", "app", "logger"),
    (cloudfront, "_distributions", "_match_behavior", "parse_distribution_dataplane_config"),
    (eventbridge, "_rules", "_targets"),
    (iam, "_roles"),
    (iam_evaluator, "EvalContext", "_gather_role_policies", "evaluate", "evaluate_resource_policy"),
    (lambda_runtime, "reset"),
    (lambda_svc, "_esms", "_functions", "function_policy_for_arn"),
    (responses, "get_account_id", "get_region"),
)


def main():
    for place, *names in USED:
        for name in names:
            patches.original(place, name)
    aws_port, gateway_port = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=end_with_parent, daemon=True).start()
    patches.apply(INVOCATIONS.told)
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{aws_port}", f"127.0.0.1:{gateway_port}"]
    config.keep_alive_timeout = 75
    config.loglevel = "WARNING"
    asyncio.run(hypercorn.asyncio.serve(application(gateway_port), config))


if __name__ == "__main__":
    main()
