#!/usr/bin/env python3
"""Hands every file in events/ to the function it names with `sam local invoke`, and holds the answers to
events/expected.json. Run with the Python of .tools/sam, after `sam build` (`make sam` does all of it).

    .tools/sam/bin/python local/sam/invoke.py              every event
    .tools/sam/bin/python local/sam/invoke.py -v bad-vin   those with this in their name, and the whole answers

The functions run in containers as Lambda would run them, with exactly the variables that template.yaml gives them. What
stands behind them for the time of the run, on a free port of this machine:

  - the AWS services, by ministack: tables made from the template's own definitions, the queue, the bucket, the secrets;
  - a chain that knows nothing: a JSON-RPC endpoint that answers `null` to every question about a transaction.

So this proves packaging, start-up, configuration, the events' form, reading secrets, and every answer that needs no
payment. It does not prove permissions (`make rehearse` does) or the libraries of Amazon Linux (where the image is
home-made; see base-image.sh).
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time

import boto3
import botocore.config
from samcli.yamlhelper import yaml_dump, yaml_parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
BUILD = ROOT / ".aws-sam" / "build"
EVENTS = ROOT / "events"
REGION = "us-east-1"
STACK = "agora-events"
# Anybody's address will do: nothing is paid here.
PAY_TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
# Functions at a time. More only wait for each other on a small machine.
AT_ONCE = 2
# Longest one event may take; the first one also makes the image.
PATIENCE_SECONDS = 300


class Failed(Exception):
    """Something that ends the run, in words."""


# ------------------------------------------------------------------------------------------------- the container engine


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def answers(host):
    """Whether a container engine answers at this address."""
    scheme, _, place = host.partition("://")
    try:
        connection = UnixConnection(place) if scheme == "unix" else http.client.HTTPConnection(place, timeout=5)
        connection.request("GET", "/_ping")
        return connection.getresponse().status == 200
    except OSError:
        return False


def engine():
    """The first engine that answers: the one you named, Docker, the one podman.sh starts, podman's own."""
    if named := os.environ.get("DOCKER_HOST"):
        return named if answers(named) else None
    runtime = os.environ.get("XDG_RUNTIME_DIR", "/run")
    places = ["/var/run/docker.sock", OWN_PODMAN, "/run/podman/podman.sock", f"{runtime}/podman/podman.sock"]
    return next((f"unix://{place}" for place in places if answers(f"unix://{place}")), None)


OWN_PODMAN = str(TOOLS / "podman" / "podman.sock")


def own_address():
    """An address of this machine that containers reach. Nothing is sent: connecting only picks the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError as error:
            raise Failed(f"this machine has no address but its own loopback, which containers cannot reach: {error}")
        return probe.getsockname()[0]


# --------------------------------------------------------------------------------------------- what stands behind it all


class EmptyChain(http.server.BaseHTTPRequestHandler):
    """JSON-RPC of a chain nothing ever happened on."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        known = {"eth_chainId": hex(84532), "eth_blockNumber": "0x1", "eth_getTransactionCount": "0x0"}
        answer = [
            {"jsonrpc": "2.0", "id": call["id"], "result": known.get(call["method"])}
            for call in (asked if isinstance(asked, list) else [asked])
        ]
        body = json.dumps(answer if isinstance(asked, list) else answer[0]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def empty_chain(address):
    server = http.server.ThreadingHTTPServer((address, 0), EmptyChain)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{address}:{server.server_port}"
    finally:
        server.shutdown()


@contextlib.contextmanager
def ministack(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        log = open(pathlib.Path(scratch) / "log", "w+")
        # No DOCKER_HOST: it has no business with the engine.
        environment = {key: value for key, value in os.environ.items() if key != "DOCKER_HOST"}
        environment |= {"GATEWAY_PORT": str(port), "BIND_HOST": address, "TMPDIR": scratch}
        process = subprocess.Popen(
            [TOOLS / "ministack/bin/ministack"], env=environment, cwd=scratch, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            for _ in range(120):
                with socket.socket() as probe:
                    if probe.connect_ex((address, port)) == 0:
                        break
                if process.poll() is not None:
                    break
                time.sleep(0.25)
            else:
                raise Failed("ministack does not start")
            if process.poll() is not None:
                log.seek(0)
                raise Failed(f"ministack ended: {log.read()[-2000:]}")
            yield f"http://{address}:{port}"
        finally:
            process.terminate()
            process.wait()


def create_resources(template, endpoint):
    """Tables, queue, bucket and secrets as the template has them. Returns what a reference to each becomes."""
    settings = botocore.config.Config(retries={"max_attempts": 2}, s3={"addressing_style": "path"})

    def client(service):
        return boto3.client(
            service, endpoint_url=endpoint, region_name=REGION, config=settings,
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    references = {}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::DynamoDB::Table":
                table = properties["TableName"]["Fn::Sub"].replace("${AWS::StackName}", STACK)
                wanted = {
                    key: properties[key]
                    for key in ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
                    if key in properties
                }
                if stream := properties.get("StreamSpecification"):
                    wanted["StreamSpecification"] = {"StreamEnabled": True, **stream}
                client("dynamodb").create_table(TableName=table, **plain(wanted))
                references[name] = table
            case "AWS::SQS::Queue":
                queue = properties["QueueName"]["Fn::Sub"].replace("${AWS::StackName}", STACK)
                references[name] = client("sqs").create_queue(QueueName=queue)["QueueUrl"]
            case "AWS::S3::Bucket":
                references[name] = f"{STACK}-blobs"
                client("s3").create_bucket(Bucket=references[name])
            case "AWS::SecretsManager::Secret":
                length = properties["GenerateSecretString"]["PasswordLength"]
                made = client("secretsmanager").create_secret(
                    Name=f"{STACK}-{name}", SecretString=secrets.token_hex(length // 2)
                )
                references[name] = made["ARN"]
    return references


def plain(value):
    """The parser's own containers as ordinary ones."""
    return json.loads(json.dumps(value))


# ------------------------------------------------------------------------------------------------------------ the functions


def resolve(value, references):
    """A variable's value as the stack's defaults make it, with the stand-ins for its resources."""
    if not isinstance(value, dict):
        return str(value)
    (kind, argument), = value.items()
    if kind == "Ref":
        return str(references[argument])
    if kind == "Fn::Sub" and isinstance(argument, str):
        for name, text in references.items():
            argument = argument.replace("${" + name + "}", str(text))
        return argument
    if kind == "Fn::If":
        condition, then, otherwise = argument
        return resolve(then if references[f"condition {condition}"] else otherwise, references)
    raise Failed(f"local/sam/invoke.py does not know {kind}; teach it")


def local_template(template, references, endpoint):
    """The built template with every variable spelled out, and AWS where ministack is."""
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    functions = {}
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        own = resource["Properties"].get("Environment", {}).get("Variables", {})
        values = {key: resolve(value, references) for key, value in {**shared, **own}.items()}
        values["AWS_ENDPOINT_URL"] = endpoint
        resource["Properties"]["Environment"] = {"Variables": values}
        functions[resource["Metadata"]["BuildProperties"]["Binary"]] = name
    path = BUILD / "local.yaml"
    path.write_text(yaml_dump(template))
    return path, functions


def invoke(template, function, event, host, pull):
    """The function's answer, and what it logged."""
    environment = os.environ | {
        "DOCKER_HOST": host,
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    command = [TOOLS / "sam/bin/sam", "local", "invoke", function, "--template", template, "--event", event]
    command += ["--parameter-overrides", f"PayTo={PAY_TO}", f"Architecture={architecture()}"]
    if not pull or host == f"unix://{OWN_PODMAN}":
        # It is here already; podman.sh's was made here and is nowhere to be pulled from.
        command.append("--skip-pull-image")
    # Away from the project, whose samconfig.toml is for deployments.
    done = subprocess.run(
        command, cwd=BUILD, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    answer = done.stdout.strip().splitlines()
    if done.returncode != 0 or not answer:
        raise Failed(done.stderr[-1500:] or "no answer")
    return json.loads(answer[-1]), done.stderr


def architecture():
    return "arm64" if os.uname().machine in ("aarch64", "arm64") else "x86_64"


def differences(expected, answer):
    """What of the answer is not as expected, in words."""
    if "answer" in expected:
        return [] if answer == expected["answer"] else [f"answered {json.dumps(answer)}"]
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return [f"is no HTTP answer: {json.dumps(answer)[:300]}"]
    found = []
    if answer["statusCode"] != expected["status"]:
        found.append(f"status {answer['statusCode']}")
    headers = {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
    for name, values in (answer.get("multiValueHeaders") or {}).items():
        headers.setdefault(name.lower(), ", ".join(values))
    for name, value in expected.get("headers", {}).items():
        if name not in headers or value not in (None, headers[name]):
            found.append(f"header {name}: {headers.get(name)}")
    if "application/json" not in headers.get("content-type", ""):
        found.append(f"content-type {headers.get('content-type')}")
    try:
        body = json.loads(answer.get("body") or "null") or {}
    except ValueError:
        return [*found, f"a body that is not JSON: {answer['body'][:200]}"]
    wanted = dict(expected.get("body", {}))
    if "error" in expected:
        wanted["error"] = expected["error"]
    found += [f"{key} is {body.get(key)!r}" for key, value in wanted.items() if body.get(key) != value]
    found += [f"no {key}" for key in expected.get("present", []) if key not in body]
    return found


# -------------------------------------------------------------------------------------------------------------------- all


def main():
    parser = argparse.ArgumentParser(description="Runs the sample events through the built functions.")
    parser.add_argument("names", nargs="*", help="only events with one of these in their name")
    parser.add_argument("-v", "--verbose", action="store_true", help="show answers and logs")
    options = parser.parse_args()

    host = engine()
    if host is None:
        print("no container engine answers: `sam local invoke` was SKIPPED, events/ was not tried.")
        print("Start Docker or podman (DOCKER_HOST says where), or on Debian: sudo local/sam/podman.sh start")
        return 0
    expected = json.loads((EVENTS / "expected.json").read_text())
    on_disk = {path.name for path in EVENTS.glob("*.json")} - {"expected.json"}
    if on_disk != set(expected):
        raise Failed(f"events/ and expected.json name different files: {sorted(on_disk ^ set(expected))}")
    chosen = [name for name in expected if not options.names or any(part in name for part in options.names)]

    built = BUILD / "template.yaml"
    if not built.exists():
        raise Failed("nothing is built; run `make sam-build`")
    template = yaml_parse(built.read_text())
    address = own_address()
    with ministack(address) as endpoint, empty_chain(address) as chain:
        references = {name: parameter.get("Default", "") for name, parameter in template["Parameters"].items()}
        # Nobody answers there: what is sent to a connection is lost, which is logged and fails nothing.
        references |= {"SocketApi": "socket", "AWS::URLSuffix": "invalid"}
        references |= {"AWS::StackName": STACK, "AWS::Region": REGION, "PayTo": PAY_TO, "ChainRpcUrl": chain}
        # The defaults: no facilitator, so a fee wallet of its own; no secret brought along.
        references |= {f"condition {name}": False for name in template["Conditions"]}
        references |= {"condition HasFeeWallet": True, "condition MakesFeeWallet": True, "condition MakesTreasury": True}
        references |= create_resources(template, endpoint)
        path, functions = local_template(template, references, endpoint)

        def run(name, pull=False):
            started = time.monotonic()
            want = expected[name]
            try:
                answer, log = invoke(path, functions[want["function"]], EVENTS / name, host, pull)
                wrong = differences(want, answer)
            except (Failed, ValueError, subprocess.TimeoutExpired) as error:
                answer, log, wrong = None, "", [str(error)]
            took = time.monotonic() - started
            print(f"{'FAILED' if wrong else 'ok':6}  {took:5.1f} s  {name}", flush=True)
            for line in wrong:
                print(f"        {line}", flush=True)
            if options.verbose or (wrong and log):
                print(f"{json.dumps(answer, indent=2)}\n{log}", flush=True)
            return not wrong

        began = time.monotonic()
        print(f"{len(chosen)} events on {host}", flush=True)
        # The first alone: it fetches and makes the image the others use.
        good = [run(name, pull=True) for name in chosen[:1]]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            good += pool.map(run, chosen[1:])
    print(f"{sum(good)} of {len(good)} events answered as expected, in {time.monotonic() - began:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as error:
        sys.exit(f"make sam: {error}")
