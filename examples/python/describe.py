# SPDX-License-Identifier: Apache-2.0
"""Prints where the headers of this Python are and how its modules end: describe.py [MODULE...].

Fails if it lacks the headers or a module that is named.
"""

import importlib
import os
import sys
import sysconfig

for module in sys.argv[1:]:
    importlib.import_module(module)
folder = sysconfig.get_path("include")
if sys.version_info < (3, 9) or not os.path.exists(os.path.join(folder, "Python.h")):
    raise SystemExit(1)
print(folder, sysconfig.get_config_var("EXT_SUFFIX"), sep=";")
