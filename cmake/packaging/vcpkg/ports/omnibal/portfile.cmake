# SPDX-License-Identifier: Apache-2.0
# A port of the tree that it lies in, for --overlay-ports. One for a registry has vcpkg_from_github or
# vcpkg_from_git in place of these lines.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)

# Headers alone are the same for debugging.
set(VCPKG_BUILD_TYPE release)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DOMNIBAL_BUILD_TESTS=OFF -DOMNIBAL_BUILD_BENCH=OFF -DOMNIBAL_BUILD_EXAMPLES=OFF
          -DOMNIBAL_BUILD_DOCS=OFF -DOMNIBAL_WITH_MPI=OFF -DOMNIBAL_WITH_TORCH=OFF
          -DOMNIBAL_WITH_CUDA=OFF -DOMNIBAL_WITH_NCCL=OFF
          "-DOMNIBAL_INSTALL_CMAKEDIR=share/omnibal")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/omnibal)
vcpkg_fixup_pkgconfig()

vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
