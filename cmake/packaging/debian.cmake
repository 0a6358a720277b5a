# SPDX-License-Identifier: Apache-2.0
# Packages of Debian: libomnibal-dev has the headers, libomnibal-doc the pages and pictures. `cpack` in
# the build folder makes both.

set(debian_dir "${PROJECT_SOURCE_DIR}/cmake/packaging/debian")

# The changelogs, compressed as the policy of Debian wants them: without a time, so that a package is the
# same whenever it is made.
find_program(OMNIBAL_GZIP gzip)
mark_as_advanced(OMNIBAL_GZIP)
function(omnibal_compress source output)
  if(OMNIBAL_GZIP AND EXISTS "${source}")
    execute_process(COMMAND "${OMNIBAL_GZIP}" -9nc "${source}" OUTPUT_FILE "${output}"
                            COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endif()
endfunction()
omnibal_compress("${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${PROJECT_BINARY_DIR}/changelog.gz")
omnibal_compress("${debian_dir}/changelog" "${PROJECT_BINARY_DIR}/changelog.Debian.gz")

# What only a package of Debian has is installed by cpack alone.
foreach(package dev doc)
  install(
    FILES "${debian_dir}/copyright" "${PROJECT_BINARY_DIR}/changelog.gz"
          "${PROJECT_BINARY_DIR}/changelog.Debian.gz"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libomnibal-${package}"
    COMPONENT debian_${package}
    EXCLUDE_FROM_ALL)
endforeach()

# The examples that need nothing else.
file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
set(alone)
foreach(program IN LISTS programs)
  file(STRINGS "${program}" others REGEX "^#include (\"|<(CLI|nlohmann|omnibal/(cuda|comm/mpi)))")
  if(NOT others)
    list(APPEND alone "${program}")
  endif()
endforeach()
install(
  FILES ${alone}
  DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libomnibal-dev/examples"
  COMPONENT debian_dev
  EXCLUDE_FROM_ALL)

set(doc_dir "${CMAKE_INSTALL_DATADIR}/doc/libomnibal-doc")
install(
  FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md"
  DESTINATION "${doc_dir}"
  COMPONENT debian_doc
  EXCLUDE_FROM_ALL)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/docs"
  DESTINATION "${doc_dir}"
  COMPONENT debian_doc
  EXCLUDE_FROM_ALL
  FILES_MATCHING
  PATTERN "*.md"
  PATTERN "*.svg"
  PATTERN "*.png")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "omnibal maintainers <maintainers@omnibal.example>")
# One for both packages would precede the first line of each.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ
    OWNER_WRITE
    OWNER_EXECUTE
    GROUP_READ
    GROUP_EXECUTE
    WORLD_READ
    WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL headers debian_dev debian_doc)
set(CPACK_COMPONENT_HEADERS_GROUP dev)
set(CPACK_COMPONENT_DEBIAN_DEV_GROUP dev)
set(CPACK_COMPONENT_DEBIAN_DOC_GROUP doc)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libomnibal-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "g++ (>= 4:12) | clang (>= 1:14)")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS
    "cmake (>= 3.25), pkgconf, libomnibal-doc, libopenmpi-dev, libtorch-dev")
set(CPACK_DEBIAN_DEV_DESCRIPTION
    "balances computation in distributed training (headers)
omnibal is a header-only C++20 library of algorithms for training on many
devices: it packs samples into full batches, shares work evenly among ranks,
cuts models into stages, chooses activations to recompute and plans what
ranks exchange.
.
This package has the headers, a package for CMake and one for pkg-config.")

set(CPACK_DEBIAN_DOC_PACKAGE_NAME libomnibal-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SUGGESTS libomnibal-dev)
set(CPACK_DEBIAN_DOC_DESCRIPTION
    "balances computation in distributed training (documentation)
omnibal is a header-only C++20 library of algorithms for training on many
devices: it packs samples into full batches, shares work evenly among ranks,
cuts models into stages, chooses activations to recompute and plans what
ranks exchange.
.
This package has its pages: what to choose when, what is promised, what was
measured.")

include(CPack)
