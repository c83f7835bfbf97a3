"""The name server of peer.test, which sends from this machine and asks that all other mail be rejected. Further TXT records
come from a JSON file {name: text}, read for each question. Usage: zone.py PORT FILE"""

import json
import pathlib
import sys

from dnslib import QTYPE, RCODE, RR
from dnslib.server import BaseResolver, DNSServer

ZONE = {
    "peer.test.": "v=spf1 ip4:127.0.0.1 -all",
    "mx.peer.test.": "v=spf1 ip4:127.0.0.1 -all",
    "_dmarc.peer.test.": "v=DMARC1; p=reject",
}


class Resolver(BaseResolver):
    def resolve(self, request, handler):
        reply, name = request.reply(), str(request.q.qname).lower()
        zone = ZONE | (json.loads(more.read_text()) if more.exists() else {})
        if name in zone and QTYPE[request.q.qtype] == "TXT":
            reply.add_answer(*RR.fromZone(f'{name} 1 TXT "{zone[name]}"'))
        elif name not in zone:
            reply.header.rcode = RCODE.NXDOMAIN
        return reply


port, more = int(sys.argv[1]), pathlib.Path(sys.argv[2])
DNSServer(Resolver(), port=port, address="127.0.0.1", tcp=True).start_thread()
DNSServer(Resolver(), port=port, address="127.0.0.1").start()
