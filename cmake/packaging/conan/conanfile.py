# SPDX-License-Identifier: Apache-2.0
"""The recipe of Conan 2, of the tree that it lies in: conan create cmake/packaging/conan"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class Omnibal(ConanFile):
    name = "omnibal"
    description = "Balances computation in distributed training"
    license = "Apache-2.0"
    topics = ("training", "load-balancing", "packing", "pipeline", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir, os.pardir)

    def set_version(self):
        header = load(self, os.path.join(self._tree, "include", "omnibal", "version.hpp"))
        parts = [
            re.search(rf"OMNIBAL_VERSION_{part} (\d+)", header).group(1)
            for part in ("MAJOR", "MINOR", "PATCH")
        ]
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in ("LICENSE", "include/*"):
            copy(self, pattern, self._tree, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(
            self,
            "*",
            os.path.join(self.source_folder, "include"),
            os.path.join(self.package_folder, "include"),
        )

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "omnibal")
        self.cpp_info.set_property("cmake_target_name", "omnibal::omnibal")
        self.cpp_info.set_property("pkg_config_name", "omnibal")
