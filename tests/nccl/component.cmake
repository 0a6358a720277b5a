# SPDX-License-Identifier: Apache-2.0
# The component nccl where NCCL is missing or old: off, or a clear error where it was asked for. NCCL is
# a header of FOLDER here, which says that it is of an old version, or forbidden. A header without a
# library is enough.
#
# cmake -DSOURCE=... -DCONSUMER=... -DPREFIX=... -DGENERATOR=... -DFOLDER=... -P component.cmake

file(REMOVE_RECURSE "${FOLDER}")
file(WRITE "${FOLDER}/old/include/nccl.h"
     "#define NCCL_MAJOR 2\n#define NCCL_MINOR 17\n#define NCCL_PATCH 1\n")
file(WRITE "${FOLDER}/old/lib/libnccl.so" "")
set(old "-DNCCL_ROOT=${FOLDER}/old" "-DNCCL_INCLUDE_DIR=${FOLDER}/old/include"
        "-DNCCL_LIBRARY=${FOLDER}/old/lib/libnccl.so")
file(WRITE "${FOLDER}/headers/include/nccl.h"
     "#define NCCL_MAJOR 2\n#define NCCL_MINOR 18\n#define NCCL_PATCH 1\n")
# A library that is an empty word was looked for and not found.
set(headers "-DNCCL_INCLUDE_DIR=${FOLDER}/headers/include" "-DNCCL_LIBRARY=")
set(missing "-DCMAKE_DISABLE_FIND_PACKAGE_NCCL=ON")

# expect(name succeeds? text source options...): configures the project in `source`.
function(expect name wanted text source)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${source}" -B "${FOLDER}/${name}" ${ARGN}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE said
    ERROR_VARIABLE complained)
  set(said "${said}${complained}")
  # Lines are broken where CMake likes.
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  string(FIND "${said}" "${text}" position)
  if(code EQUAL 0)
    set(found TRUE)
  else()
    set(found FALSE)
  endif()
  if(NOT found STREQUAL wanted OR position EQUAL -1)
    message(SEND_ERROR "${name}: succeeds: ${found}, not found: '${text}' in:\n${said}")
  endif()
endfunction()

set(bare -DOMNIBAL_BUILD_TESTS=OFF -DOMNIBAL_BUILD_BENCH=OFF -DOMNIBAL_BUILD_EXAMPLES=OFF
         -DOMNIBAL_BUILD_DOCS=OFF)
expect(project_missing TRUE "omnibal::nccl is off: NCCL was not found" "${SOURCE}" ${bare} ${missing})
expect(project_headers TRUE "Configuring done" "${SOURCE}" ${bare} ${headers} -DOMNIBAL_WITH_NCCL=ON)
expect(project_old TRUE "omnibal::nccl is off: NCCL 2.17.1 is older than 2.18" "${SOURCE}" ${bare}
       ${old})
expect(project_asked FALSE "OMNIBAL_WITH_NCCL is ON, but NCCL 2.17.1 is older than 2.18" "${SOURCE}"
       ${bare} ${old} -DOMNIBAL_WITH_NCCL=ON)

set(package "-DCMAKE_PREFIX_PATH=${PREFIX}")
set(optional -DKIND_OF_COMPONENTS=OPTIONAL_COMPONENTS)
set(required -DKIND_OF_COMPONENTS=COMPONENTS)
expect(package_optional TRUE "without NCCL: The component nccl needs NCCL, which was not found."
       "${CONSUMER}" ${package} ${optional} ${missing})
expect(package_missing FALSE "The component nccl needs NCCL, which was not found." "${CONSUMER}"
       ${package} ${required} ${missing})
expect(package_old FALSE "The component nccl needs NCCL 2.18 or later, and 2.17.1 was found."
       "${CONSUMER}" ${package} ${required} ${old})
expect(package_headers TRUE "Configuring done" "${CONSUMER}" ${package} ${required} ${headers})
