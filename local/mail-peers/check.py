"""The facts that ../mail-peers.sh checks, one line each. Usage: check.py postfix|ses WORK"""

import base64
import email
import email.policy
import hashlib
import hmac
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request

import dkim
from nacl.signing import SigningKey

peer, work = sys.argv[1], pathlib.Path(sys.argv[2])
failures = 0
FEE = 0.005


def fact(holds, text, seen=None):
    global failures
    failures += not holds
    print(f"{'ok    ' if holds else 'FAILED'} {text}" + ("" if holds or seen is None else f": {seen}"), flush=True)


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{arguments}: {done.stdout} {done.stderr}")


def ask(path):
    """What the owner of the wallet reads, whatever its status."""
    return run(["local/ask.sh", path])


def send(more=None, **mail):
    """Quotes, pays and waits; the quote and the ended job."""
    done = run(["node", "tests/clients/v2/send.mjs", json.dumps(mail), json.dumps(more or {}), os.environ["STACK"]])
    (work / "seen" / f"{peer}-{mail.get('subject', 'reply')[:10]}.json").write_text(json.dumps(done, indent=1))
    return done["quote"], done["job"]


def until(read, seconds=30):
    """What `read` returns once it is something."""
    end = time.monotonic() + seconds
    while not (found := read()) and time.monotonic() < end:
        time.sleep(0.3)
    return found


def inbox(path=""):
    return ask(f"/v1/tools/inbox{path}")


def tracking(job):
    return ask(f"/v1/requests/{job['request_id']}")["email_tracking"]


def headers(raw):
    return email.message_from_bytes(raw, policy=email.policy.default)


def own_key(stack):
    """The DKIM record of agents.test, derived as the service does: no call tells it."""
    secret = (pathlib.Path(stack).parent / "service-secret").read_text().encode()
    word = hmac.digest(secret, b"mail", hashlib.sha256)
    seed = hmac.digest(word, b"dkim ed25519 agora agents.test", hashlib.sha256)
    return b"v=DKIM1; k=ed25519; p=" + base64.b64encode(SigningKey(seed).verify_key.encode())


def signature_holds(raw, record, domain="agents.test"):
    """Whether dkimpy accepts the signature, if the domain publishes this record."""
    asked = []

    def look_up(name, timeout=5):
        asked.append(name)
        return record

    try:
        return dkim.verify(raw, dnsfunc=look_up) and asked == [f"agora._domainkey.{domain}.".encode()]
    except dkim.DKIMException as error:
        print(f"       dkimpy: {error}")
        return False


def delivered(user):
    folder = work / "mail" / user / "new"
    return [path.read_bytes() for path in sorted(folder.glob("*"))] if folder.exists() else []


def bounces(to, what, permanent, **more):
    """Sends to an address that Postfix takes and reports on; checks what the report does, and what the next mail does."""
    _, job = send(to_address=to, subject=what, body="Are you there?", **more)
    fact(job.get("status") == "completed", f"{what}: accepted by Postfix", job)
    state = until(lambda: (now := tracking(job))["status"] == "bounced" and now)
    fact(state, "the report of Postfix marks the recipient bounced", state or tracking(job))
    if permanent:
        _, job = send(to_address=to, subject=f"{what}, again", body="Are you there?", **more)
        fact(tracking(job)["recipients"]["suppressed"] == 1, "the next mail to it is suppressed", job)
        fact(job["status"] == "failed" and float(job.get("credited_usdc", 0)) == FEE, "and credited", job)
    else:
        _, job = send(to_address=to, subject=f"{what}, again", body="Are you there?", **more)
        fact(tracking(job)["recipients"]["suppressed"] == 0, "but the address is not suppressed", job)


def own_domain():
    """A domain of the agent's own: proven by DNS, its bounces come to the agent's address."""
    sender = "shop@own.test"
    content = {"to_address": "games@peer.test", "subject": "From my own", "body": "x", "from_address": sender}
    done = run(["node", "tests/clients/v2/send.mjs", json.dumps(content), "quote", os.environ["STACK"]])
    fact(done["quote"]["status"] == "unprovisioned", "a domain of one's own: not proven yet", done)
    records = {f"{record['name']}.": record["value"] for record in done["quote"]["dns_records"]}
    (work / "zone.json").write_text(json.dumps(records))
    before = len(delivered("games"))
    _, job = send(**content)
    fact(job.get("status") == "completed", "with its records in the DNS, it sends", job)
    until(lambda: len(delivered("games")) > before)
    mine = [raw for raw in delivered("games") if b"shop@own.test" in raw]
    fact(mine and headers(mine[0])["Return-Path"] == f"<{sender}>", "the envelope sender is the address")
    record = records["agora._domainkey.own.test."].encode()
    fact(mine and signature_holds(mine[0], record, "own.test"), "dkimpy accepts the signature by the quoted record")
    bounces("nobody-else@peer.test", "Bounce to my own", True, from_address=sender)
    reports = [mail for mail in inbox("?limit=50")["emails"] if mail["from"] == "MAILER-DAEMON@mx.peer.test"]
    fact(reports and reports[0]["to"] == sender, "the report is in the inbox, too", reports)
    (work / "seen" / "report.json").write_text(json.dumps(inbox(f"/{reports[0]['id']}") if reports else None, indent=1))


def postfix():
    stack = os.environ["STACK"]
    domain = ask("/v1/tools/email/domains")["domains"][0]
    own = domain["default_from"]

    # Out: one mail each, and one that the relay refuses.
    body = "Dear peer,\n.\n..two dots\nFrom here on: äöü €\n" + "long " * 400 + "\nend\n"
    attachment = {"filename": "naïve.bin", "content": base64.b64encode(bytes(range(256)) * 40).decode()}
    to = ["games@peer.test", "news@peer.test", "refused@peer.test"]
    content = dict(to_address=to, subject="Grüße: one mail each", body=body, from_name="Ada, of Agora")
    quote, job = send({"attachments": [attachment]}, **content)
    fact(quote.get("total_cost") == 3 * FEE, "a quote for three", quote)
    fact(job.get("status") == "completed", "the job completes", job)
    result = job.get("result") or {}
    counts = {name: count for name, count in result.get("recipients", {}).items() if count}
    fact(counts == {"accepted": 2, "refused": 1}, "Postfix accepts two and refuses one", result)
    refused = (result.get("failed") or [{}])[0]
    fact("never heard of" in refused.get("reason", ""), "its words are the reason", refused)
    fact(float(job.get("credited_usdc", 0)) == FEE, "the refused one is credited", job)

    until(lambda: delivered("games") and delivered("news"))
    mails = {user: delivered(user) for user in ("games", "news")}
    fact([len(mails[user]) for user in mails] == [1, 1], "each user has one mail", {u: len(m) for u, m in mails.items()})
    ids = []
    for user, [raw] in mails.items():
        (work / "seen" / f"{user}.eml").write_bytes(raw)
        mail = headers(raw)
        fact(str(mail["To"]) == f"{user}@peer.test" and mail["Cc"] is None, f"{user} sees no other recipient", mail["To"])
        verp = rf"<bounces\+[0-9a-f]{{32}}\.\d+@agents\.test>"
        fact(re.fullmatch(verp, mail["Return-Path"]), "the envelope sender names the mail", mail["Return-Path"])
        fact(mail["From"].addresses[0].addr_spec == own, "From is the agent's address", mail["From"])
        fact(mail["From"].addresses[0].display_name == "Ada, of Agora", "with the name", mail["From"])
        fact(mail["Subject"] == "Grüße: one mail each", "the subject survives", mail["Subject"])
        text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
        fact(text.rstrip("\n") == body.rstrip("\n"), "the text survives, dots and long lines too", text[:200])
        [part] = list(mail.iter_attachments())
        fact(part.get_content() == bytes(range(256)) * 40, "the attachment survives")
        fact(part.get_filename() == "naïve.bin", "and its name", part.get_filename())
        fact(all(len(line) <= 998 for line in raw.splitlines()), "no line is longer than 998 bytes")
        fact(signature_holds(raw, own_key(stack)), "dkimpy accepts the DKIM signature of what arrived")
        changed = raw.replace(b"Dear peer", b"Dear peas")
        fact(changed != raw and not signature_holds(changed, own_key(stack)), "and not that of a changed mail")
        ids.append(mail["Message-ID"])
    fact(len(set(ids)) == 2, "the message ids differ", ids)

    # Back: an answer, by Postfix to the agent's address.
    answer = (
        f"From: Games <games@peer.test>\nTo: {own}\nSubject: Re: one mail each\nMessage-ID: <answer.1@peer.test>\n"
        f"In-Reply-To: {ids[0]}\nReferences: {ids[0]}\nDate: Mon, 23 Nov 2026 12:00:00 +0000\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nThank you, Grüße.\n.. and dots\n"
    )
    postfix_sends("games@peer.test", answer)
    found = until(lambda: [mail for mail in inbox("?limit=10")["emails"] if mail["from"] == "games@peer.test"])
    fact(found, "the answer is in the inbox")
    if found:
        mail = inbox(f"/{found[0]['id']}")
        (work / "seen" / "answer.json").write_text(json.dumps(mail, indent=1))
        fact("Grüße.\n.. and dots" in mail["body"].replace("\r", "").replace("\n\n", "\n"), "with its text", mail["body"])
        fact(mail.get("related_outbound_id") == result["email"]["id"], "related to the mail that was sent", mail)
        fact(mail.get("thread_id"), "with a thread", mail)
        verdicts = mail.get("verdicts", {})
        fact((verdicts.get("spf"), verdicts.get("dmarc")) == ("pass", "pass"), "SPF and DMARC pass", verdicts)
        # A second answer to the answer stays in the thread; so does what the agent writes back.
        _, again = send(reply_to_email_id=mail["id"], body="You are welcome.")
        fact(again.get("status") == "completed", "the agent answers back", again)
        back = until(lambda: [raw for raw in delivered("games") if b"Re: " in headers(raw)["Subject"].encode()])
        if back:
            reply = headers(back[-1])
            (work / "seen" / "reply.eml").write_bytes(back[-1])
            fact(reply["In-Reply-To"] == "<answer.1@peer.test>", "its reply names the answer", reply["In-Reply-To"])
            references = reply["References"].split()
            fact(references == [ids[0], "<answer.1@peer.test>"], "References has the whole thread", references)
            postfix_sends(
                "games@peer.test",
                f"From: games@peer.test\nTo: {own}\nSubject: Re: one mail each\nMessage-ID: <answer.2@peer.test>\n"
                f"In-Reply-To: {reply['Message-ID']}\n\nBye.\n",
            )
            second = until(lambda: [m for m in inbox("?limit=10")["emails"] if m.get("message_id", "").strip("<>") == "answer.2@peer.test"])
            fact(second and second[0]["thread_id"] == mail["thread_id"], "one thread for all", second)
        else:
            fact(False, "the reply arrives at Postfix")
    analytics = ask("/v1/tools/email/analytics/agents.test")
    fact(analytics["replied"] == 2 and analytics["sent"] == 3, "analytics: 3 sent, 2 replied", analytics)

    # A forgery: the author's domain says p=reject, and SPF passes for another domain only.
    before = inbox()["count"]
    postfix_sends("games@elsewhere.test", f"From: games@peer.test\nTo: {own}\nSubject: Forged\nMessage-ID: <f@x>\n\nx\n")
    fact(until(lambda: "DMARC policy" in log()), "a forged author is refused, by DMARC", log()[-500:])
    fact(inbox()["count"] == before, "and is not in the inbox")
    postfix_sends("games@peer.test", "From: games@peer.test\nTo: agent-nobody@agents.test\nSubject: x\n\nx\n")
    fact(until(lambda: "550 5.1.1 No such mailbox" in log()), "an unknown agent is refused at RCPT", log()[-500:])
    tagged = own.replace("@", "+orders@")
    postfix_sends("games@peer.test", f"From: games@peer.test\nTo: {tagged}\nSubject: Tagged\n\nx\n")
    fact(until(lambda: [m for m in inbox()["emails"] if m["subject"] == "Tagged"]), "a tagged address reaches its owner")

    # Bounces: Postfix takes the mail, and reports to the envelope sender.
    bounces("Nobody-Here@peer.test", "Unknown user", True)
    bounces("moved@peer.test", "Alias of an unknown user", True)
    bounces("ada@gone.test", "Host out of reach", False)
    before = inbox("?limit=50")["count"]
    mail = headers(delivered("games")[0])
    postfix_sends("games@peer.test", f"From: games@peer.test\nTo: {mail['Return-Path'].strip('<>')}\nSubject: I am away\n\nx\n")
    until(lambda: log().count("250 2.0.0 Stored") and False, 2)
    fact(inbox("?limit=50")["count"] == before, "what else comes to an envelope sender is dropped")
    until(lambda: ask("/v1/tools/email/analytics/agents.test")["bounced"] >= 4)
    analytics = ask("/v1/tools/email/analytics/agents.test")
    fact(analytics["bounced"] == 4, "analytics counts each bounce once", analytics)
    notes = ask("/v1/tools/notifications?limit=50")
    (work / "seen" / "notifications.json").write_text(json.dumps(notes, indent=1))
    told = sorted(re.findall(r"Mail to (\S+) bounced", json.dumps(notes)))
    fact(told == ["Nobody-Here@peer.test", "moved@peer.test"], "a notification of each bounce for good", told)
    own_domain()
    print("       balance", ask("/v1/tools/balance"))


def log():
    return (work / "postfix.log").read_text(errors="replace")


def postfix_sends(sender, message):
    command = [*shlex.split(os.environ["SENDMAIL"]), "-t", "-i", "-f", sender]
    done = subprocess.run(command, input=message.encode(), capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"sendmail: {done.stderr.decode()}")


def moto(method, path, body=None):
    head = {
        "content-type": "application/json",
        "authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/ses/aws4_request, SignedHeaders=host, Signature=0",
    }
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["MOTO"] + path, data, head, method=method)) as answer:
        return json.loads(answer.read() or b"{}")


def ses():
    stack = os.environ["STACK"]
    to = "ada@example.com"
    _, job = send(to_address=to, subject="Unverified", body="x")
    fact(job.get("status") == "failed", "an unverified sender: the job fails", job)
    fact(float(job.get("credited_usdc", 0)) == FEE, "and everything is credited", job)
    fact(tracking(job)["recipients"]["refused"] == 1, "the recipient is refused", tracking(job))
    moto("POST", "/v2/email/identities", {"EmailIdentity": "agents.test"})
    _, job = send(to_address=[to, "bo@example.com"], subject="Grüße", body="<p>Hello <b>you</b></p>")
    fact(job.get("status") == "completed", "a verified sender: the job completes", job)
    fact(job.get("result", {}).get("recipients", {}).get("accepted") == 2, "both are accepted", job)
    data = moto("GET", "/moto-api/data.json")
    messages = data.get("ses", {}).get("RawMessage", [])
    (work / "seen" / "ses-messages.json").write_text(json.dumps(messages, indent=1))
    fact(len(messages) == 2, "SES has one raw mail for each", len(messages))
    for message in messages:
        raw = message["raw_data"].encode()
        mail = headers(raw)
        fact(set(message["destinations"]) == {str(mail["To"])}, "for its recipient only", message["destinations"])
        fact(mail["Subject"] == "Grüße", "the subject survives base64 in JSON", mail["Subject"])
        fact(mail.get_content_type() == "multipart/alternative", "HTML has a text version", mail.get_content_type())
        fact(signature_holds(raw, own_key(stack)), "dkimpy accepts the DKIM signature")


try:
    {"postfix": postfix, "ses": ses}[peer]()
except urllib.error.HTTPError as error:
    sys.exit(f"{error} {error.read()}")
print(f"{peer}: {failures} failed" if failures else f"{peer}: all facts hold")
sys.exit(bool(failures))
