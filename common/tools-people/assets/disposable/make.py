"""Makes domains.bin, the list of disposable mail domains, from the source of a release of the crate `mailchecker` (MIT):

    cargo info mailchecker@6.0.21   # downloads it
    python3 make.py ~/.cargo/registry/src/*/mailchecker-6.0.21/src/lib.rs

For each domain the first five bytes of the SHA-256 of its name, sorted. The list needs no memory, unpacking or relocation when
a function starts. One name in twenty million matches by chance.
"""

import hashlib
import re
import sys

source = open(sys.argv[1], encoding="utf-8").read()
line = re.search(r"static BLACKLIST: &'static \[&'static str\] = &\[(.*?)\];", source, re.S).group(1)
domains = {name.lower() for name in re.findall(r'"([^"]+)"', line)}
marks = sorted({hashlib.sha256(name.encode()).digest()[:5] for name in domains})
open("domains.bin", "wb").write(b"".join(marks))
print(len(domains), "domains,", len(marks) * 5, "bytes")
