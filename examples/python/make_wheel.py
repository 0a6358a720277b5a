# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of a built package: make_wheel.py PACKAGE VERSION OUTPUT.

PACKAGE is the folder that holds `omnibal`. Needs nothing but Python; prints the path of the wheel.
The same files give the same wheel.
"""

import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

METADATA = """Metadata-Version: 2.1
Name: omnibal
Version: {version}
Summary: Balances computation in distributed training
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
"""
WHEEL = """Wheel-Version: 1.0
Generator: omnibal
Root-Is-Purelib: false
Tag: {tag}
"""


def tag():
    """The interpreter and the platform that a wheel of this Python is for."""
    interpreter = "cp%d%d" % sys.version_info[:2]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "-".join([interpreter, interpreter, platform])


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "%s,sha256=%s,%d" % (name, digest, len(data))


def main():
    package, version, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    info = "omnibal-%s.dist-info" % version

    files = {}
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[path.relative_to(package).as_posix()] = path.read_bytes()
    files[info + "/METADATA"] = METADATA.format(version=version).encode()
    files[info + "/WHEEL"] = WHEEL.format(tag=tag()).encode()
    record = [record_line(name, data) for name, data in files.items()]
    record.append(info + "/RECORD,,")
    files[info + "/RECORD"] = ("\n".join(record) + "\n").encode()

    output.mkdir(parents=True, exist_ok=True)
    wheel = output / ("omnibal-%s-%s.whl" % (version, tag()))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main()
