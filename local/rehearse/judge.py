"""What a run has found, in words: what fails the rehearsal, and what it tells at its end."""

import collections
import re

def logical(role, stack):
    """The role's name in the template."""
    return re.sub(rf"^{re.escape(stack)}-(\w+)-[0-9A-Z]+$", r"\1", role)


def wanted(denial, stack):
    """A denial as the statement that is missing."""
    statement = f"Action: {denial['action']}, Resource: {denial['resource']}"
    if keys := denial.get("keys"):
        statement += f", LeadingKeys: {', '.join(keys)}"
    if denial.get("attributes"):
        statement += f" (attributes {', '.join(denial['attributes'])})"
    return f"{logical(denial['role'], stack)} has no statement for {statement} ({denial['times']} times)"


def failures(report, stack):
    """What may not happen in a rehearsal, as texts."""
    found, rights = [], report["rights"]
    found += [f"denied: {wanted(one, stack)}" for one in rights["denied"]]
    by_item = "only allowed if IAM judges a transaction item by item, and denied with its table's keys together"
    found += [f"{by_item}: {wanted(one, stack)}" for one in rights["together"]]
    for name, text in (("failed", "credentials refused"), ("unreadable", "no key can be read from a request")):
        found += [f"{text}: {one['what']} ({one['times']} times)" for one in rights[name]]
    found += [f"AWS lacks a right: {text}" for text in report["services"]["lacking"]]
    found += [f"AWS would refuse to deploy this: {text}" for text in report["quotas"]]
    for error in report["invocations"]["errors"]:
        about = f"{error['function']} ended with an error ({error['route'] or error['trigger']})"
        found.append(f"{about}: {error['error']}\n{error['log']}")
    for function, route, status, count in report["invocations"]["routes"]:
        if status >= 500 and (route, status) not in LEGAL:
            found.append(f"{route} was answered {status} ({count} times)")
    return found


# A vendor that declines is a 503 of ours, and the journey of cards asks for one; the service's status is one until the
# scheduler has run for the first time.
LEGAL = {("POST /v1/credits/checkout", 503), ("ANY /v1/status", 503)}


def tell(report, stack, complete):
    """Prints what was exercised, and what was not."""
    invocations, rights = report["invocations"], report["rights"]
    by_function = collections.defaultdict(list)
    for name, trigger, count in invocations["invocations"]:
        by_function[re.sub(rf"^{stack}-(\w+)Function-.*", r"\1", name)].append(f"{count} by {trigger}")
    print("\nexercised")
    print(f"  {sum(rights['decisions'].values())} requests judged by the role that made them, {len(rights['denied'])} denied")
    services = report["services"]
    print(f"  {services['asked']} rights of Lambda, API Gateway and the scheduler judged, {len(services['lacking'])} lacking")
    called, routes = {route for _, route, _, _ in invocations["routes"]}, set(report["routes"])
    print(f"  {len(called & routes)} of {len(routes)} routes")
    for name, told in sorted(by_function.items()):
        print(f"  {name:<12} {', '.join(told)}")
    if not complete:
        return
    if uncalled := sorted(routes - called):
        print(f"\nroutes that no journey called\n  {', '.join(uncalled)}")
    unused = collections.defaultdict(lambda: collections.defaultdict(list))
    for role, sid, action in report["unused"]:
        unused[logical(role, stack)][sid].append(action.split(":")[1])
    print(f"\npermitted and used by nothing in this run ({len(report['unused'])} actions; a journey may just be missing)")
    for role, statements in sorted(unused.items()):
        told = "; ".join(f"{sid}: {' '.join(actions)}" for sid, actions in statements.items())
        print(f"  {role:<15} {told}")
    print("""
not exercised, and for the first deployment to AWS to show (docs/DEPLOY.md)
  the distribution itself: TLS, HTTP/2, its two functions, its policies; this gateway only follows its behaviours
  pages that can be read, mail servers, registers and vendors: no address here is public; webhooks are attempted in vain
  Bedrock and other models; a facilitator; throttling, colliding transactions, eventual consistency, alarms that ring
  arm64, Amazon Linux, memory limits, cold starts; retention by TTL and lifecycle rules""")
