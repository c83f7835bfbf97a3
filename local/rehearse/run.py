#!/usr/bin/env python3
"""Rehearses the deployment (`make rehearse`): template.yaml as it is, with this machine's builds of the functions, on an
emulator of AWS that enforces every role's permissions; then journeys of agents, sellers and platforms through its gateway.

    run.py                            all of it; ends with 0 only if every journey passed and nothing was denied
    run.py --only account,webhooks    these journeys, without the update from the previous template
    run.py --without SoulsRole/Jobs   without a statement, to see that its absence is noticed
    run.py --keep                     leaves everything running until Ctrl-C

Logs are left in .tools/rehearsal/logs, and what was found in report.json among them.

local/rehearse.sh runs it, with the Python of .tools/ministack, and builds what it needs.
"""

import argparse
import base64
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import judge
import peers
from stack import ARCHITECTURE, KEPT, REGION, ROOT, Deployment, Failed, clients, package, parsed, without

TOOLS = ROOT / ".tools"
ARCHIVES = TOOLS / "rehearsal-code"
NAME = "rehearsal"
# Nobody is reached by it: the gateway answers in its place.
PUBLIC_ORIGIN = "https://rehearsal.example"
ACP_TOKEN = "local-acp-token"
# The scripts and the published clients that are used against the local stack too, and what each is run with.
SCRIPTS = {
    "tour": ["local/marketplace-tour.sh"],
    "spend": ["local/spend.sh"],
    "checkout-script": ["local/checkout.sh", "agora-credits"],
    "buy-script": ["local/buy.sh", "/v1/tools/lookup/vin", '{"vin": "1HGCM82633A004352"}'],
}
# Longest that a script, or all journeys of our own, may take.
PATIENCE_SECONDS = 420


# ------------------------------------------------------------------------------------------------------------- processes


class Processes:
    """What this run started, each in a group of its own, ended with the run however it ends."""

    def __init__(self):
        self.running, self.lock = [], threading.Lock()

    def start(self, command, log, **more):
        # A log of its own for what goes wrong, where somebody reads the output.
        outputs = {"stderr": open(log, "wb")} if "stdout" in more else {"stdout": open(log, "wb"), "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, start_new_session=True, **{"stdin": subprocess.DEVNULL, **outputs, **more})
        with self.lock:
            self.running.append(process)
        return process

    def stop(self, process, patience=10):
        """Asks the whole group to end, and makes it. One that has ended is left alone: its number may be another's by now."""
        with self.lock:
            if process not in self.running:
                return
            self.running.remove(process)
        # Looked at without being collected, so that the group's number stays its own until all of it has ended. What a thread
        # that waits has collected meanwhile is over, and its number may be another's by now.
        try:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.killpg(process.pid, signal.SIGTERM)
            end = time.time() + patience
            while time.time() < end and not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        except (ChildProcessError, ProcessLookupError):
            pass

    def stop_all(self):
        for process in reversed(list(self.running)):
            self.stop(process)


PROCESSES = Processes()


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def until(what, look, seconds, every=0.2):
    """Looks until there is something, and returns it."""
    end = time.time() + seconds
    while time.time() < end:
        if found := look():
            return found
        time.sleep(every)
    raise Failed(f"{what}: waited {seconds} seconds")


class Clock:
    """Says what each part took."""

    def __init__(self):
        self.begun = self.last = time.time()

    def part(self, text):
        now = time.time()
        print(f"  {text:<64} {now - self.last:6.1f} s", flush=True)
        self.last = now


# ------------------------------------------------------------------------------------------------------------ the world


def start_chain(binary, logs):
    """The local chain, with wallets that hold test dollars."""
    log = logs / "chain.log"
    process = PROCESSES.start([binary], log, stdout=subprocess.PIPE)
    line = process.stdout.readline()
    if not line:
        raise Failed(f"the chain does not start: {log.read_text()}")
    return json.loads(line)


class Emulator:
    """The emulator of AWS, as the launcher runs it."""

    def __init__(self, folder, logs, variables):
        aws, gateway = free_ports(2)
        self.url, self.gateway = f"http://127.0.0.1:{aws}", f"http://127.0.0.1:{gateway}"
        self.log = logs / "emulator.log"
        scratch = folder / "emulator"
        scratch.mkdir()
        # Nothing of this shell's own settings of AWS or of containers.
        foreign = ("AWS_", "DOCKER_", "MINISTACK")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment = kept | {
            "AUTH": "true", "GATEWAY_PORT": str(aws), "BIND_HOST": "127.0.0.1", "AWS_ENDPOINT_URL": self.url,
            "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "INFO", "TMPDIR": str(scratch), "S3_DATA_DIR": str(scratch / "s3"),
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "MINISTACK_REGION": REGION,
            "REHEARSAL_VARIABLES": json.dumps(variables),
        }
        launcher = [sys.executable, pathlib.Path(__file__).with_name("emulator.py"), str(aws), str(gateway)]
        # It ends when this pipe is closed, and so with this process.
        self.process = PROCESSES.start(launcher, self.log, env=environment, cwd=scratch, stdin=subprocess.PIPE)
        until("the emulator to start", self.is_ready, 60)

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failed(f"the emulator ended:\n{self.log.read_text()[-3000:]}")
        try:
            return self.ask("ready") is not None
        except OSError:
            return False

    def ask(self, what, **query):
        """Asks the launcher something (see emulator.py)."""
        text = urllib.parse.urlencode(query)
        try:
            with urllib.request.urlopen(f"{self.url}/_rehearsal/{what}?{text}", timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"the emulator cannot say {what}: {error.read().decode()}") from None


def make_secrets(client, relay):
    """The secrets that an operator brings, and the parameters that name them."""
    secret = base64.b64encode(bytes(32)).decode()
    contents = {
        "AcpSecretArn": {"bearer_tokens": ACP_TOKEN, "webhooks": f"{ACP_TOKEN} https://platform.invalid/orders whsec_{secret}"},
        "ProviderKeysSecretArn": {"hunter": peers.PROVIDER_KEY},
        "CardSecretArn": {"key": peers.CARD_KEY, "webhook_secret": "whsec_rehearsal"},
        "SmtpUrlSecretArn": relay.url,
    }
    service = client("secretsmanager")
    return {
        name: service.create_secret(Name=name, SecretString=text if isinstance(text, str) else json.dumps(text))["ARN"]
        for name, text in contents.items()
    }


def give_keys(client, outputs, chain):
    """The local chain's keys, which hold ETH and dollars, in place of the generated ones."""
    service = client("secretsmanager")
    for output, wallet in (("FeeWalletSecretArn", "relayer"), ("TreasurySecretArn", "treasury")):
        service.put_secret_value(SecretId=outputs[output], SecretString=chain[wallet]["private_key"])


# ------------------------------------------------------------------------------------------------- the template of before


def previous_template(present):
    """The newest committed template that makes other resources than this one, and its commit; nothing in a clone without
    history. A template with nothing but other bounds of its parameters would be no update: CloudFormation refuses it."""
    def made_by(template):
        return {part: what for part, what in parsed(template).items() if part not in ("Parameters", "Metadata", "Description")}

    def git(*arguments):
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    for commit in git("log", "-n", "50", "--format=%H", "--", "template.yaml").split():
        template = git("show", f"{commit}:template.yaml")
        if template and made_by(template) != made_by(present):
            return commit[:7], template
    return None


class Kept:
    """What has to be the same after any update: the resources that hold data and keys, and what is in them."""

    def __init__(self, client, deployment):
        self.client, self.deployment = client, deployment

    def state(self):
        resources = {
            name: physical for name, (kind, physical) in self.deployment.resources().items() if kind in KEPT
        }
        secrets = {
            name: self.client("secretsmanager").get_secret_value(SecretId=physical)["SecretString"]
            for name, physical in resources.items() if physical.startswith("arn:aws:secretsmanager:")
        }
        return resources, secrets

    def rows(self, rows):
        """Puts a row into every table and an object into the bucket, or, with `rows`, looks whether they are there."""
        found = {}
        for name, physical in self.state()[0].items():
            if physical.startswith("arn:"):
                continue
            if name.endswith("Table"):
                table = self.client("dynamodb")
                key = {"pk": {"S": "REHEARSAL"}, "sk": {"S": "KEPT"}}
                if rows is None:
                    table.put_item(TableName=physical, Item={**key, "text": {"S": name}})
                found[name] = table.get_item(TableName=physical, Key=key).get("Item")
            else:
                if rows is None:
                    self.client("s3").put_object(Bucket=physical, Key="souls/rehearsal", Body=name.encode())
                found[name] = self.client("s3").get_object(Bucket=physical, Key="souls/rehearsal")["Body"].read().decode()
        return found

    def compare(self, before, when):
        resources, secrets = self.state()
        for name, physical in before[0].items():
            if resources.get(name) != physical:
                raise Failed(f"{when}: {name} was {physical} and is {resources.get(name)}")
        for name, text in before[1].items():
            if secrets.get(name) != text:
                raise Failed(f"{when}: the secret {name} has another text")


# -------------------------------------------------------------------------------------------------------------- journeys


def run_scripts(wanted, environment, logs):
    """Starts the scripts that are wanted; a function that waits for them and says how each ended."""
    pool = concurrent.futures.ThreadPoolExecutor(8)

    def one(name, command):
        begun, log = time.time(), logs / f"{name}.log"
        process = PROCESSES.start(command, log, env=environment, cwd=ROOT)
        try:
            status = process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            status = "too long"
        PROCESSES.stop(process)
        return name, status, time.time() - begun, log

    return [pool.submit(one, name, command) for name, command in wanted.items()]


def run_journeys(only, stack_file, environment, logs):
    """Runs all journeys at once. Returns what failed."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    # Node has WebSockets since 20.10, and without being asked since 22.
    flags = ["--experimental-websocket", "--no-warnings"] if version.startswith(("v20.", "v21.")) else []
    own = ["node", *flags, "local/rehearse/journeys.mjs", str(stack_file), *only]
    wanted = {name: command for name, command in SCRIPTS.items() if not only or name in only}
    if not only or set(only) - set(SCRIPTS):
        wanted["journeys"] = own
    failures = []
    for done in concurrent.futures.as_completed(run_scripts(wanted, environment, logs)):
        name, status, seconds, log = done.result()
        if name == "journeys":
            lines = [f"  {line}" for line in log.read_text().splitlines() if line.startswith(("ok", "FAILED"))]
            print("\n".join(lines), flush=True)
        else:
            print(f"  {'ok' if status == 0 else 'FAILED':<7}{name:<57} {seconds:6.1f} s", flush=True)
        if status != 0:
            text = log.read_text(errors="replace")
            failures.append(f"{name} ended with {status} (all of it in {log.relative_to(ROOT)}):\n{text[-2500:]}")
    return failures


def wait_for_events(emulator, stack, apis):
    """Until every function was invoked that something invokes by itself: queues, streams and schedules are not in a hurry."""
    waiting = {"Scheduler", "Payouts", "Aggregator", "Pusher", "Deliveries", "Worker", "Executor", "Indexer"}

    def missing():
        report = emulator.ask("report", stack=stack, apis=apis)["invocations"]["invocations"]
        invoked = {name.removeprefix(f"{stack}-").split("Function-")[0] for name, trigger, _ in report if trigger != "HTTP"}
        return waiting - invoked

    try:
        until("every event function to be invoked", lambda: not missing(), 75, every=1)
    except Failed:
        return [f"nothing invoked {', '.join(sorted(missing()))}"]
    return []


# ------------------------------------------------------------------------------------------------------------------- main


def rehearse(options, clock):
    folder = TOOLS / options.folder
    logs = folder / "logs"
    shutil.rmtree(folder, ignore_errors=True)
    logs.mkdir(parents=True)
    print(f"rehearsing the deployment; logs are in {logs.relative_to(ROOT)}", flush=True)
    only = [name for name in (options.only or "").split(",") if name]
    functions = sorted(folder.name for folder in (ROOT / "functions").iterdir())
    archives = package([options.target / name for name in functions], ARCHIVES)
    clock.part(f"{len(archives)} functions are stripped and zipped")

    relay = peers.Relay()
    vendors = peers.Vendors(relay)
    chain = start_chain(options.target / "examples/chain_run", logs)
    emulator = Emulator(folder, logs, {"CARD_PROCESSOR_URL": vendors.url})
    client = clients(emulator.url)
    clock.part("the emulator and the chain run")

    present = without((ROOT / "template.yaml").read_text(), options.without)
    deployment = Deployment(client, NAME, archives)
    deployment.upload()
    parameters = {
        "Stage": "dev", "Architecture": ARCHITECTURE, "PayTo": chain["treasury"]["address"],
        "ChainRpcUrl": chain["chain"]["rpc_url"], "RateLimitScale": "10",
        # The local chain asks for a thousand times the gas price of an L2.
        "EtherUsdc": "1", "PublicHost": "distribution",
        "PublicBaseUrl": PUBLIC_ORIGIN, "AlarmEmail": "operator@rehearsal.example", "MailFrom": "agora@rehearsal.example",
        "EmailDomains": "agents.test",
        "PeopleProviders": "hunter", "ProviderCallsPerDay": "hunter=1000",
        "ProviderUrls": json.dumps({"hunter": vendors.url, "sec": vendors.url}),
        **make_secrets(client, relay),
    }
    clock.part("the code is uploaded")

    previous = None if only or options.without else previous_template(present)
    kept = Kept(client, deployment)
    if previous:
        deployment.deploy(previous[1], parameters, "CREATE")
        give_keys(client, deployment.outputs(), chain)
        before, rows = kept.state(), kept.rows(None)
        clock.part(f"the template of {previous[0]} is deployed")
        changes = deployment.deploy(present, parameters, "UPDATE")
        kept.compare(before, "after the update")
        if kept.rows(rows) != rows:
            raise Failed("rows or objects are lost after the update")
        clock.part(f"and updated to the present one: {len(changes)} changes, nothing that holds data is replaced")
    else:
        changes = deployment.deploy(present, parameters, "CREATE")
        give_keys(client, deployment.outputs(), chain)
        before, rows = kept.state(), kept.rows(None)
        clock.part(f"the template is deployed: {len(changes)} resources")
        if not only and not options.without:
            print("  there is no other template in this clone's history: the update is NOT rehearsed")
    resources = deployment.resources()
    apis = ",".join(resources[name][1] for name in ("Api", "SocketApi"))
    emulator.ask("begin", api=resources["Api"][1])

    stack_file = folder / "stack.json"
    stack_file.write_text(json.dumps({
        "service_name": "Agora", "base_url": emulator.gateway, "soul_base_url": emulator.gateway,
        "ws_url": emulator.gateway.replace("http", "ws", 1), "public_origin": PUBLIC_ORIGIN, "peers": vendors.url,
        "chain": {**chain["chain"], "pay_to": parameters["PayTo"]}, "payers": chain["payers"], "apis": apis,
        "aws_url": emulator.url,
    }))
    environment = os.environ | {"STACK": str(stack_file), "ACP_TOKEN": ACP_TOKEN}
    subprocess.run([ROOT / "local/client.sh"], check=True)
    put_page(client, deployment.outputs()["BlobBucketName"], resources["IndexQueue"][1])
    failures = run_journeys(only, stack_file, environment, logs)
    clock.part("the journeys are through")
    if options.keep:
        print(f"\n  STACK={stack_file} for the scripts in local/; AWS is {emulator.url}; Ctrl-C ends it", flush=True)
        signal.pause()
    if not only:
        failures += wait_for_events(emulator, NAME, apis)
        clock.part("queues, streams and schedules were heard")
    failures += [
        f"{waiting} messages lie in {queue}: what failed five times, or could not be counted"
        for queue in ("DeadLetterQueue", "UncountedQueue") if (waiting := messages(client, resources[queue][1]))
    ]
    report = emulator.ask("report", stack=NAME, apis=apis)
    (logs / "report.json").write_text(json.dumps(report, indent=1))
    failures += judge.failures(report, NAME)
    if previous:
        deployment.deploy(previous[1], parameters, "UPDATE")
        kept.compare(before, "after the update back")
        if kept.rows(rows) != rows:
            raise Failed("rows or objects are lost after the update back")
        with urllib.request.urlopen(f"{emulator.gateway}/v1/stats", timeout=30) as answer:
            json.load(answer)
        clock.part(f"and updated back to {previous[0]}: data and secrets are as they were")
    judge.tell(report, NAME, complete=not only)
    return failures


def messages(client, queue):
    found = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])
    return int(found["Attributes"]["ApproximateNumberOfMessages"])


def put_page(client, bucket, queue):
    """A page as the worker keeps it once it has read one: no page can be read here, because no address is public."""
    page = {
        "url": "https://example.com/lighthouse", "same": "example.com/lighthouse", "title": "The lighthouse",
        "read_at": time.time_ns() // 1_000_000,
        "text": "# The lighthouse\n\nThe lamp of the lighthouse turns against the sun, so that ships at sea can tell by its "
                "rhythm which one it is.",
    }
    key = "index/pages/rehearsal"
    client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(page).encode(), ContentType="application/json")
    client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps({"kind": "page", "key": key}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=pathlib.Path, required=True, help="where cargo puts debug builds")
    parser.add_argument("--only", help="journeys, separated by commas")
    parser.add_argument("--without", action="append", default=[], metavar="ROLE/SID", help="a statement to leave out")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--folder", default="rehearsal", help="of .tools, where logs are left")
    options = parser.parse_args()
    # Whatever ends this run ends what it started; in the background of a script, Ctrl-C would be ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    clock = Clock()
    try:
        failures = rehearse(options, clock)
    except Failed as failed:
        failures = [str(failed)]
    except KeyboardInterrupt:
        failures = ["interrupted"]
    finally:
        PROCESSES.stop_all()
        shutil.rmtree(TOOLS / options.folder / "emulator", ignore_errors=True)
    print(f"\n{time.time() - clock.begun:.0f} s in all, at a load of {os.getloadavg()[1]:.1f} on {os.cpu_count()} processors")
    for failure in failures:
        print(f"\nFAILED: {failure}", file=sys.stderr)
    if failures:
        print(f"\nlogs: .tools/{options.folder}/logs", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
